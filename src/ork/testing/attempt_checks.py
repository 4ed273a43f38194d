"""Invariants of attempts: compares each attempt's row in the store with what really happened."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from ork.model.ids import AttemptKey, RunId
from ork.model.task import Attempt, AttemptStatus, FailureKind, GiveUp, GroupPlace, Task
from ork.model.workflow import OnUnreachable, RetryOn, SubWorkflow, TaskSpec
from ork.scheduler.subworkflow import child_id
from ork.testing.ledger import Ledger, RunRecord
from ork.testing.values import Values

FENCE_SECONDS = 45.0
UNREACHABLE_SECONDS = 60.0 + FENCE_SECONDS  # the stale limit and the fence time
PROGRESS_SECONDS = 150.0  # of the start limit of 300 s: a scheduler may learn of an end that much later
_WORTH = {
    AttemptStatus.FAILED: RetryOn.EXIT,
    AttemptStatus.LOST: RetryOn.LOST,
    AttemptStatus.TIMED_OUT: RetryOn.TIMEOUT,
}


class AttemptChecks:
    """Checks attempts. The cluster calls it as a witness when user code starts and ends and when workers report."""

    def __init__(
        self,
        ledger: Ledger,
        violate: Callable[[str, str], None],
        trace: Callable[[str, object], None],
        values: Values,
    ) -> None:
        self._ledger = ledger
        self._violate = violate
        self._trace = trace
        self._values = values
        self._alive: dict[AttemptKey, int] = {}
        self._starts: dict[AttemptKey, int] = {}
        self._reports: dict[AttemptKey, str] = {}
        self._outputs: dict[AttemptKey, str | None] = {}
        self._lost: set[AttemptKey] = set()
        self._given_up_waiting: set[AttemptKey] = set()
        self.is_frozen: Callable[[AttemptKey], bool] = lambda _attempt: False
        self.silent_for: Callable[[AttemptKey], float] = lambda _attempt: 0.0
        self.was_overwritten: Callable[[AttemptKey], bool] = lambda _attempt: False
        self.waits_in_progress: Callable[[AttemptKey, float], bool] = lambda _attempt, _seconds: False
        self.abandoned: set[AttemptKey] = set()  # frozen on an unreachable machine: they count as over

    # ── what really happens ──────────────────────────────────────────────────────────────────────

    def launched(self, attempt: AttemptKey) -> None:
        self._trace("launched", attempt)
        if self._row(attempt) is None:
            self._violate("start-committed", f"{attempt} was launched and is not in the store")

    def user_code_started(self, attempt: AttemptKey, rivals: tuple[AttemptKey, ...]) -> None:
        self._trace("started", attempt)
        self._alive[attempt] = self._alive.get(attempt, 0) + 1
        self._starts[attempt] = self._starts.get(attempt, 0) + 1
        row = self._row(attempt)
        if self._starts[attempt] > 1:
            self._violate("starts-once", f"{attempt} started {self._starts[attempt]} times")
        rivals = tuple(rival for rival in rivals if rival not in self.abandoned)
        if rivals:
            self._violate("one-live-process", f"{attempt} started while {[str(rival) for rival in rivals]} was alive")
        if row is not None and row.group is not None:
            self._check_parallelism(row.group)
        if row is not None and (row.status.is_final or self._ledger.runs[attempt.run].run.status.is_final):
            self._violate("no-start-after-end", f"{attempt} started and is {row.status} already")

    def _check_parallelism(self, group: GroupPlace) -> None:
        rows = (self._row(key) for key, alive in self._alive.items() if alive and key not in self.abandoned)
        running = [row.key for row in rows if row is not None and row.group is not None and row.group.id == group.id]
        if len(running) > group.parallelism:
            self._violate(
                "group-slots", f"{group.id} holds {group.parallelism} slots and runs {list(map(str, running))}"
            )

    def user_code_went_on(self, attempt: AttemptKey) -> None:
        """Note that suspended user code continues. If its attempt was given up meanwhile, it must end before it does
        anything."""
        if attempt in self.abandoned:
            self._violate("one-live-process", f"{attempt} went on after it had been given up")

    def user_code_ended(self, attempt: AttemptKey) -> None:
        self._trace("ended", attempt)
        self._alive[attempt] -= 1

    def reported(self, attempt: AttemptKey, state: str, output: str | None) -> None:
        """Note that the worker's final status is stored; it was alive until then."""
        self._trace("reported", f"{attempt} {state}")
        self._reports[attempt] = state
        self._outputs[attempt] = output

    def will_report(self, attempt: AttemptKey, state: str, output: str | None) -> None:
        """Note that the final status is being written: it may be accepted from now on, or arrive too late."""
        self._trace("will report", f"{attempt} {state}")
        self._reports.setdefault(attempt, f"late {state}")
        self._outputs.setdefault(attempt, output)

    def report_lost(self, attempt: AttemptKey) -> None:
        """Note that the final status is lost, because the machine lost power before the write reached its disk."""
        self._trace("report lost", attempt)
        self._lost.add(attempt)
        if attempt in self._reports:
            self._reports[attempt] = "late " + self._reports[attempt].removeprefix("late ")

    # ── what is committed ────────────────────────────────────────────────────────────────────────

    def check(self, before: RunRecord, record: RunRecord, attempt: Attempt) -> None:
        old = before.attempts.get(attempt.key)
        if old is not None and old.status.is_final and old != attempt:
            self._violate("terminal-once", f"{attempt.key} was {old.status} and became {attempt.status}")
        if old is not None and attempt.seq < old.seq:
            self._violate("seq-grows", f"{attempt.key} went from {old.seq} to {attempt.seq}")
        is_given_up = attempt.closing is GiveUp.NOT_STARTED and (old is None or old.closing is None)
        if is_given_up and self.waits_in_progress(attempt.key, PROGRESS_SECONDS):
            self._violate("group-waits", f"{attempt.key} waited inside {attempt.group} and was given up")
        waited = old is not None and old.waits_for is not None and old.closing is None
        if waited and attempt.key not in self._lost and attempt.closing not in (None, GiveUp.CANCEL, GiveUp.TIMEOUT):
            self._given_up_waiting.add(attempt.key)
        if attempt.status is AttemptStatus.LOST and attempt.key in self._given_up_waiting:
            self._violate("deferred", f"{attempt.key} waited for its job and was lost: {attempt.failure}")
        if not attempt.status.is_final or (old is not None and old.status.is_final):
            return
        if is_unconfirmed(attempt):
            self._check_unconfirmed(record, attempt)
        if self._alive.get(attempt.key) and self._may_be_abandoned(record, attempt):
            self._trace("abandoned", attempt.key)
            self.abandoned.add(attempt.key)
        elif self._alive.get(attempt.key):
            self._violate("no-end-while-alive", f"{attempt.key} became {attempt.status} while its user code ran")
        reported = self._reports.get(attempt.key)
        if attempt.status is not AttemptStatus.SUCCESS and reported == "success":
            self._violate("late-success", f"{attempt.key} had reported success and became {attempt.status}")
        has_exited = attempt.failure is not None and attempt.failure.kind in (FailureKind.EXIT, FailureKind.EXCEPTION)
        if has_exited and reported not in ("failed", "late failed"):
            self._violate("true-failure", f"{attempt.key} became {attempt.status}; its worker had reported {reported}")
        never_began = attempt.failure is not None and attempt.failure.kind is FailureKind.START
        if never_began and attempt.key in self._starts:
            self._violate("true-failure", f"{attempt.key} is reported as never started, but its user code ran")
        if isinstance(record.spec(attempt.key.task).action, SubWorkflow):
            self._check_child(attempt)
        if record.tasks[attempt.key.task].attempt < attempt.key.number:
            self._violate("attempt-numbers", f"{attempt.key} ended and is not yet its task's attempt")

    def check_groups(self, record: RunRecord, launched: Sequence[Attempt]) -> None:
        """Check the launch groups of a commit: each is new, of one task, in order, and has at most the slots its task
        may have."""
        groups: dict[str, list[Attempt]] = {}
        for attempt in launched:
            if attempt.group is not None:
                groups.setdefault(attempt.group.id, []).append(attempt)
        for id, members in groups.items():
            written = [each for each in record.attempts.values() if each.group is not None and each.group.id == id]
            places = [each.group.index for each in members if each.group is not None]
            if len(written) != len(members) or places != list(range(len(members))) or id != str(members[0].key):
                self._violate("group-rows", f"{id} has {[str(each.key) for each in written]} at {places}")
            if len({(each.key.task.name, each.group) for each in members}) != len(members):
                self._violate("group-rows", f"{id} has two attempts at one place")
            if len({each.key.task.name for each in members}) != 1:
                self._violate("group-rows", f"{id} has attempts of several tasks")

    def _may_be_abandoned(self, record: RunRecord, attempt: Attempt) -> bool:
        """True if the attempt may count as over although its machine does not answer: after the time in which a worker ends
        itself. A frozen machine may resume later; `on_unreachable: wait` prevents overlap even then."""
        if record.spec(attempt.key.task).on_unreachable is OnUnreachable.WAIT:
            return attempt.closing is GiveUp.DECLARED_DEAD
        return self.is_frozen(attempt.key)

    def _check_unconfirmed(self, record: RunRecord, attempt: Attempt) -> None:
        """Check an attempt whose end was not observed: it was silent long enough, or a user declared it dead."""
        if attempt.closing is GiveUp.DECLARED_DEAD:
            return
        silent = self.silent_for(attempt.key)
        if record.spec(attempt.key.task).on_unreachable is OnUnreachable.WAIT:
            self._violate("unreachable", f"{attempt.key} was to be waited for and became {attempt.status}")
        if silent < (FENCE_SECONDS if self.was_overwritten(attempt.key) else UNREACHABLE_SECONDS):
            self._violate("unreachable", f"{attempt.key} became {attempt.status} after {silent:.0f} s of silence")

    def check_birth(self, child: RunId, parent: str) -> None:
        for record in self._ledger.runs.values():
            for key, row in record.attempts.items():
                if str(key) == parent and row.status.is_final:
                    self._violate("child-ends-first", f"{child} was created and {key} is {row.status} already")

    def _check_child(self, attempt: Attempt) -> None:
        """Check that a child run has ended before the attempt that waits for it. (Later rounds are started by
        users.)"""
        child = self._ledger.runs.get(child_id(attempt.key))
        if child is not None and child.run.round == 1 and not child.run.status.is_final:
            detail = f"{attempt.key} became {attempt.status} while its run {child.run.id} is {child.run.status}"
            self._violate("child-ends-first", detail)
        if child is None and attempt.status is AttemptStatus.SUCCESS:
            self._violate("child-ends-first", f"{attempt.key} is success and its run never was")

    def check_next(self, before: RunRecord, record: RunRecord, attempt: Attempt, now: datetime) -> None:
        """Check a dispatched attempt: it has the next number, retries and rule allow it, and it does not start too
        early."""
        key, task = attempt.key, record.tasks[attempt.key.task]
        spec = record.spec(key.task)
        earlier = sorted(other.number for other in record.attempts if other.task == key.task and other != key)
        if earlier != list(range(1, key.number)) or task.attempt != key.number:
            self._violate("attempt-numbers", f"{key} follows {earlier}")
        if key.number - task.earlier_attempts > 1 + spec.retries:
            self._violate("retry-budget", f"{key} is number {key.number - task.earlier_attempts} of its round")
        last = record.attempts.get(AttemptKey(key.run, key.task, key.number - 1))
        if last is not None and not last.status.is_final:
            self._violate("attempt-numbers", f"{key} was dispatched while {last.key} is {last.status}")
        if last is not None and key.number - 1 > task.earlier_attempts and not is_worth_a_retry(spec, last):
            self._violate("retry-rule", f"{key} follows {last.key}, which is {last.status}: {last.failure}")
        is_to_fail = spec.on_unreachable is OnUnreachable.FAIL and key.number - 1 > task.earlier_attempts
        if last is not None and is_to_fail and is_unconfirmed(last):
            self._violate("retry-rule", f"{key} follows {last.key}, which was unreachable and was to fail")
        due = before.tasks[key.task].retry_at if key.task in before.tasks else None
        if due is not None and due > now:
            self._violate("retry-rule", f"{key} was dispatched at {now} and due at {due}")

    def check_success(self, record: RunRecord, task: Task) -> None:
        attempt = record.current_attempt(task)
        won = [other.key for other in record.attempts.values() if _succeeded_in_round(other, task)]
        if attempt is None or won != [attempt.key]:
            self._violate("true-success", f"{record.run.id} {task.key} is success by {won}")
            return
        reported = self._reports.get(attempt.key)
        if reported not in ("success", "late success"):
            self._violate("true-success", f"{attempt.key} is success; its worker had reported {reported}")
        elif self._values.text(task.output) != self._outputs[attempt.key]:
            self._violate("true-success", f"{attempt.key} made {self._outputs[attempt.key]}, kept {task.output}")

    def check_failure(self, record: RunRecord, task: Task) -> None:
        attempt = record.current_attempt(task)
        if attempt is None or not attempt.status.is_final:
            self._violate("run-state", f"{record.run.id} {task.key} failed; its attempt is {attempt}")
            return
        tries = task.attempt - task.earlier_attempts
        if tries <= record.spec(task.key).retries and is_worth_a_retry(record.spec(task.key), attempt):
            self._violate("retry-budget", f"{attempt.key} failed for good after {tries} of its tries")

    def _row(self, attempt: AttemptKey) -> Attempt | None:
        record = self._ledger.runs.get(attempt.run)
        return None if record is None else record.attempts.get(attempt)


def is_unconfirmed(attempt: Attempt) -> bool:
    return attempt.failure is not None and "unreachable" in (attempt.failure.detail or {})


def is_worth_a_retry(spec: TaskSpec, last: Attempt) -> bool:
    if last.failure is not None and (last.failure.detail or {}).get("retry") is False:
        return False
    if last.failure is not None and last.failure.kind in (FailureKind.INPUT, FailureKind.INTERNAL):
        return False
    return _WORTH.get(last.status) in spec.retry_on


def _succeeded_in_round(attempt: Attempt, task: Task) -> bool:
    is_recent = attempt.key.task == task.key and attempt.key.number > task.earlier_attempts
    return is_recent and attempt.status is AttemptStatus.SUCCESS

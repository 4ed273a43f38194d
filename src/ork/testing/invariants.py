"""The judge: compares every answered call to the store with what really happens."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from hashlib import sha256

from ork.model.ids import RunId, SchedulerId, TaskKey
from ork.model.installation import Control
from ork.model.quarantine import QuarantinedRun
from ork.model.record import replaced
from ork.model.run import CommandKind, NewRun, Run, RunCommand, RunStatus
from ork.model.task import Task, TaskStatus
from ork.model.workflow import CompiledWorkflow, Rate
from ork.objects.attempt_documents import AttemptDocuments
from ork.state.records import Accepted, Claim, ClaimedRun, Committed, RunChanges, TooLate
from ork.testing.attempt_checks import AttemptChecks
from ork.testing.budgets import BudgetChecks
from ork.testing.controls import ControlChecks
from ork.testing.language_checks import LanguageChecks, has_tried, is_cached, is_decided_by_people, is_hopeless
from ork.testing.lease_checks import LeaseChecks
from ork.testing.ledger import (
    Ledger,
    RunRecord,
    as_granted,
    comparable,
    is_applied,
    may_start,
    must_skip,
    slots_of,
    state_of,
)
from ork.testing.rate_checks import RateChecks
from ork.testing.values import Values
from ork.testing.violations import Violation

_BEGUN = (TaskStatus.DISPATCHED, TaskStatus.RUNNING, TaskStatus.SUCCESS, TaskStatus.FAILED)


class Judge:
    """Methods with names of store methods are called with their result and arguments when the call takes effect."""

    def __init__(self, clock: Callable[[], float], lease_seconds: float, objects: AttemptDocuments) -> None:
        self.ledger = Ledger()
        self.violations: list[Violation] = []
        self.workflows: dict[str, CompiledWorkflow] = {}
        self.alive: set[SchedulerId] = set()
        self.next_fire: dict[str, datetime | None] = {}  # of each schedule
        self.asked_at: float | None = None  # when the call began that takes effect now, if that takes time
        self._clock = clock
        self._lease_seconds = lease_seconds
        self._slots: dict[tuple[str, str], RunId] = {}
        self._latest: dict[SchedulerId, datetime] = {}  # the latest time seen, since a clock may be set back
        self._hash = sha256()
        self.trace_lines: list[str] | None = None
        values = Values(objects)
        self.attempts = AttemptChecks(self.ledger, self.violate, self.trace, values)
        self.leases = LeaseChecks(self.ledger, self.violate, clock)
        self.rates = RateChecks(clock, self.violate, lambda: self._clock() if self.asked_at is None else self.asked_at)
        self._used: dict[str, list[tuple[float, int]]] = {}  # slots of each limit in use, and since when
        self.budgets = BudgetChecks(self.violate)
        self.controls = ControlChecks(self.violate)
        self._language = LanguageChecks(values, self.violate)

    def violate(self, invariant: str, detail: str) -> None:
        self.trace("VIOLATION", f"{invariant}: {detail}")
        self.violations.append(Violation(invariant, detail, self._clock()))

    def trace(self, what: str, detail: object = "") -> None:
        line = f"{self._clock():.6f} {what} {detail}"
        self._hash.update(line.encode() + b"\n")
        if self.trace_lines is not None:
            self.trace_lines.append(line)

    @property
    def trace_hash(self) -> str:
        return self._hash.hexdigest()

    # ── people ───────────────────────────────────────────────────────────────────────────────────

    def set_limits(self, _answer: None, limits: Mapping[str, int], rates: Mapping[str, Rate]) -> None:
        self.ledger.limits, self.rates.pools = dict(limits), dict(rates)

    def create_runs(self, answer: tuple[Run, ...], runs: Sequence[NewRun], *_: object) -> None:
        for wanted, run in zip(runs, answer, strict=True):
            self.trace("created", run.id)
            for slot in slots_of(wanted):
                if self._slots.setdefault(slot, run.id) != run.id:
                    self.violate("one-run-per-slot", f"{slot}: {self._slots[slot]} and {run.id}")
            if run.id not in self.ledger.runs:
                self.ledger.runs[run.id] = RunRecord(run, self.workflows[run.workflow])
                if run.parent is not None:
                    self.attempts.check_birth(run.id, run.parent)

    def fire(
        self, answer: bool, workflow: str, expected: object, runs: Sequence[NewRun], following: datetime | None,
        now: datetime, **_: object,
    ) -> None:  # fmt: skip
        """A schedule was fired: its runs exist now. A time that already had a run keeps that run."""
        if answer and expected != self.next_fire[workflow]:
            self.violate("one-fire", f"{workflow} was moved on from {expected}; it was at {self.next_fire[workflow]}")
        if answer:
            self.next_fire[workflow] = following
        if answer and runs:
            self.controls.check_fire(workflow)
        for new in runs if answer else ():
            self.trace("fired", f"{new.id} {new.scheduled_for}")
            if new.id not in self.ledger.runs:
                row = Run(
                    new.id, new.workflow, new.version, RunStatus.PENDING, new.trigger, new.params, now,
                    scheduled_for=new.scheduled_for,
                )  # fmt: skip
                self.create_runs((row,), (new,))

    def submit_command(self, answer: Accepted | TooLate | None, command: RunCommand, *_: object) -> None:
        self.trace("asked", f"{command.kind} {command.run} {type(answer).__name__}")
        if not isinstance(answer, Accepted):
            return
        record = self.ledger.runs[command.run]
        record.commands[answer.command_id] = replaced(command, id=answer.command_id)
        self.ledger.set_aside.discard(command.run)
        if command.kind is CommandKind.CANCEL:
            if record.run.status.is_final:
                self.violate("cancel-binds", f"{command.run} is {record.run.status} and a cancel was accepted")
            record.cancel_stands = True

    def set_control(self, _answer: None, control: Control) -> None:
        self.trace(control.mode, control.target)
        self.controls.set(control)

    def clear_control(self, _answer: bool, target: str) -> None:
        self.trace("resumed", target)
        self.controls.clear(target)

    # ── ownership ────────────────────────────────────────────────────────────────────────────────

    def register(self, _answer: None, scheduler: SchedulerId, *_: object, **__: object) -> None:
        """A scheduler that registers owns no runs: those that it owned before are free."""
        self.trace("registered", scheduler)
        self._set_free(scheduler)
        self.leases.registered(scheduler)
        self.ledger.leases[scheduler] = self._clock() + self._lease_seconds

    def renew(self, answer: bool, scheduler: SchedulerId) -> None:
        if answer:
            self.ledger.leases[scheduler] = self._clock() + self._lease_seconds
            self.leases.renewed(scheduler)

    def expire(self, _answer: None, schedulers: Sequence[SchedulerId]) -> None:
        for scheduler in schedulers:
            self.trace("expired", scheduler)
            if scheduler in self.alive:
                self.violate("one-owner", f"{scheduler} was expired while alive")
            self.ledger.leases[scheduler] = float("-inf")

    def release(
        self, _answer: None, scheduler: SchedulerId, runs: Sequence[RunId] | None = None, *, exits: bool = False
    ) -> None:
        self.trace("released", scheduler)
        if exits:
            self.controls.clear(scheduler)
        self._set_free(scheduler, runs)
        if runs is None:
            self.ledger.leases.pop(scheduler, None)

    def _set_free(self, scheduler: SchedulerId, runs: Sequence[RunId] | None = None) -> None:
        for record in self.ledger.runs.values():
            if record.owner == scheduler and (runs is None or record.run.id in runs):
                record.owner = None

    def stopped_cleanly(self, scheduler: SchedulerId) -> None:
        owned = [record.run.id for record in self.ledger.runs.values() if record.owner == scheduler]
        if owned:
            self.violate("released", f"{scheduler} stopped and still owns {owned}")

    def claim_runs(self, answer: Claim, scheduler: SchedulerId, _limit: int, now: datetime, **_: object) -> None:
        self.leases.check(scheduler)
        self.controls.check_claim(scheduler, answer)
        for broken in answer.set_aside:
            self.ledger.runs[broken.run].epoch += 1
            self._note_set_aside(scheduler, broken, now)
        for claimed in answer.runs:
            record = self.ledger.runs[claimed.run.id]
            self.trace("claimed", f"{claimed.run.id} {scheduler} {claimed.epoch}")
            if record.owner != scheduler and self.ledger.is_held(record, self._clock()):
                self.violate("one-owner", f"{scheduler} took {claimed.run.id} from {record.owner}, whose lease holds")
            if claimed.epoch <= record.epoch:
                self.violate("epoch-fence", f"{claimed.run.id} claimed at {claimed.epoch} after {record.epoch}")
            self.leases.taken_over(record.owner, scheduler)
            record.owner, record.epoch = scheduler, claimed.epoch
            self._compare(claimed, record)
        self._check_active_runs(answer)

    def set_aside(
        self, run: QuarantinedRun | None, scheduler: SchedulerId, _run: RunId, _epoch: int, _why: str, now: datetime
    ) -> None:
        if run is not None:
            self._note_set_aside(scheduler, run, now)

    def _note_set_aside(self, scheduler: SchedulerId, broken: QuarantinedRun, now: datetime) -> None:
        record = self.ledger.runs[broken.run]
        if record.owner != scheduler and self.ledger.is_held(record, self._clock()):
            self.violate("one-owner", f"{scheduler} set {broken.run} aside, and the lease of {record.owner} holds")
        self.ledger.were_set_aside.add(broken.run)
        self.trace("set aside", f"{broken.run} {broken.reason}")
        self.attempts.abandoned.update(attempt.key for attempt in record.active_attempts())  # asked to stop, once
        record.set_aside(broken, now)
        if not broken.is_cancelled:
            self.ledger.set_aside.add(broken.run)

    def _compare(self, claimed: ClaimedRun, record: RunRecord) -> None:
        for what, found, expected in (
            ("run", comparable(claimed.run), comparable(record.run)),
            ("cancel", claimed.run.cancel_requested_at is not None, record.cancel_stands),
        ):
            if found != expected:
                self.violate("durable", f"{what} of {claimed.run.id}: read {found}, committed {expected}")
        self._compare_rows(claimed, record)

    def _compare_rows(self, claimed: ClaimedRun, record: RunRecord) -> None:
        for what, found, expected in (
            ("tasks", {task.key: task for task in claimed.tasks}, record.tasks),
            ("attempts", {a.key: a for a in claimed.attempts}, {a.key: a for a in record.active_attempts()}),
        ):
            if found != expected:
                self.violate("durable", f"{what} of {claimed.run.id}: read {found}, committed {expected}")

    def check_loaded(self, answer: Claim, scheduler: SchedulerId) -> None:
        """The rows that an owner has read since its claim took effect, while it still is the owner."""
        for claimed in answer.runs:
            record = self.ledger.runs[claimed.run.id]
            if (record.owner, record.epoch) == (scheduler, claimed.epoch):
                self._compare_rows(claimed, record)

    def _check_active_runs(self, claim: Claim) -> None:
        for name in sorted({claimed.run.workflow for claimed in claim.runs}):
            most = self.workflows[name].max_active_runs
            if most is None:
                continue
            records = [record for record in self.ledger.runs.values() if record.run.workflow == name]
            begun = [record for record in records if self._is_under_way(record)]
            first_round = [r.run.id for r in begun if r.run.round == 1 and not r.cancel_stands]
            first_round = [
                id for id in first_round if id not in self.ledger.were_set_aside
            ]  # these no longer count against the limit
            if len(first_round) > most:
                self.violate("max-active-runs", f"{name} allows {most}, under way: {first_round}")

    def _is_under_way(self, record: RunRecord) -> bool:
        if record.run.id in self.ledger.set_aside:
            return False
        if record.run.status is RunStatus.PENDING:
            return self.ledger.is_held(record, self._clock())
        return not record.run.status.is_final

    # ── commits ──────────────────────────────────────────────────────────────────────────────────

    def commit(self, answer: Committed, scheduler: SchedulerId, changes: Sequence[RunChanges], now: datetime) -> None:
        latest = self._latest[scheduler] = max(now, self._latest.get(scheduler, now))
        before = self.ledger.used() if self.ledger.limits else {}
        for change in changes:
            record = self.ledger.runs[change.run_id]
            is_owner = record.owner == scheduler and record.epoch == change.epoch
            if change.run_id in answer.fenced:
                self.trace("fenced", f"{change.run_id} {scheduler}")
                if is_owner and self.ledger.is_held(record, self._clock()):
                    self.violate("epoch-fence", f"{scheduler} owns {change.run_id} and was fenced")
            elif change.run_id in answer.overruled:
                self.trace("overruled", change.run_id)
            elif not is_owner:
                detail = (
                    f"{scheduler} wrote {change.run_id} at {change.epoch}; {record.owner} owns it at {record.epoch}"
                )
                self.violate("epoch-fence", detail)
            else:
                self._apply(record, change, answer, latest, now)
        self._check_limits(answer, before)
        self.controls.check_starts(scheduler, tuple(answer.admitted))
        self.rates.check_refusals(answer.full)

    def _apply(
        self, record: RunRecord, change: RunChanges, answer: Committed, now: datetime, decided_at: datetime
    ) -> None:
        before = dataclasses.replace(record, tasks=dict(record.tasks), attempts=dict(record.attempts))
        done = [record.commands[number] for number in change.commands_done if number in record.commands]
        launches = [request for request in change.launches if request.attempt.key in answer.admitted]
        tasks = [*change.tasks, *(request.task for request in launches)]
        launched = [as_granted(request.attempt, answer) for request in launches]
        attempts = [*change.attempts, *launched]
        self._apply_run(record, change.run)
        if any(alert.is_over_budget for alert in change.alerts) and record.run.cancel_requested_at is not None:
            record.cancel_stands = True
        for task in tasks:
            record.tasks[task.key] = task
        for attempt in attempts:
            record.attempts[attempt.key] = attempt
        self._trace_rows(record, change.run, tasks)
        for task in tasks:
            self._check_task(before, record, task, done, now)
        for name in sorted({task.key.name for task in tasks if record.spec(task.key).fans_out}):
            self._language.check_whole(record, name)
        for attempt in attempts:
            self.attempts.check(before, record, attempt)
        self.attempts.check_groups(record, launched)
        for request in launches:
            self._check_dispatch(record, request.task)
            self.rates.check_start(record, request)
            self.attempts.check_next(before, record, request.attempt, now)
        self.budgets.check(before, record, change, [attempt.key for attempt in launched], decided_at)
        self._check_commands(before, record, change)
        self._check_alerts(before, record, change, tasks)
        self._check_run(record)
        if change.release_ownership:
            self._check_released(record)

    def _apply_run(self, record: RunRecord, run: Run | None) -> None:
        if run is None:
            return
        old = record.run
        if run.round > old.round:
            record.cancel_stands = False
        elif old.status.is_final and comparable(run) != comparable(old):
            self.violate("terminal-once", f"{run.id} was {old.status} and became {run.status}")
        if run.status.is_final and record.cancel_stands and run.status is not RunStatus.CANCELLED:
            self.violate("cancel-binds", f"{run.id} became {run.status} though its cancel was accepted")
        record.run = run

    def _trace_rows(self, record: RunRecord, run: Run | None, tasks: Sequence[Task]) -> None:
        if run is not None:
            self.trace("run", f"{run.id} {run.status} round {run.round}")
        for task in tasks:
            self.trace("task", f"{record.run.id} {task.key} {task.status} {task.attempt}")

    def _check_task(
        self, before: RunRecord, record: RunRecord, task: Task, done: Sequence[RunCommand], now: datetime
    ) -> None:
        old, spec = before.tasks.get(task.key), record.spec(task.key)
        is_revived = record.run.round > before.run.round
        retries = [command for command in done if command.kind is CommandKind.RETRY]
        if old is not None and old.status.is_final and old != task and not is_revived:
            self.violate("terminal-once", f"{record.run.id} {task.key} was {old.status} and became {task.status}")
        elif is_revived and len(retries) == 1:
            self._language.check_retry(before, record, task, retries[0])
        has_waited = old is None or old.status is TaskStatus.PENDING or is_revived
        if task.key.index is None and has_waited and task.status in _BEGUN:
            self._language.check_begun(record, task)
        if task.status is TaskStatus.SKIPPED and old != task:
            self._check_skip(record, task)
        if task.key.index is None and spec.fans_out and not is_hopeless(task):
            self._language.check_group(before, record, task)
        elif is_decided_by_people(spec):
            self._language.check_decision(before, record, task, done, now)
        elif task.status is TaskStatus.SUCCESS and (old is None or old.status is not TaskStatus.SUCCESS):
            self._check_success(record, task)
        elif task.status is TaskStatus.FAILED and (old is None or old.status is not TaskStatus.FAILED):
            check = self._language.check_hopeless if is_hopeless(task) else self.attempts.check_failure
            check(record, task)

    def _check_success(self, record: RunRecord, task: Task) -> None:
        if has_tried(task) and not is_cached(task):
            self.attempts.check_success(record, task)
            self._language.note_success(record, task)
        else:
            self._language.check_cached(record, task)

    def _check_skip(self, record: RunRecord, task: Task) -> None:
        above = [record.tasks[TaskKey(name)] for name in record.spec(task.key).depends_on]
        has_failed = any(other.status is TaskStatus.FAILED for other in record.tasks.values())
        if must_skip(record.spec(task.key), above) or (record.workflow.fail_fast and has_failed):
            return
        if not self._language.may_skip(record, task):
            self.violate("skip-at-once", f"{record.run.id} {task.key} was skipped and its rule may yet hold")

    def _check_dispatch(self, record: RunRecord, task: Task) -> None:
        above = [record.tasks[TaskKey(name)] for name in record.spec(task.key).depends_on]
        if not may_start(record.spec(task.key), above):
            states = {str(other.key): str(other.status) for other in above}
            self.violate("dispatch-rule", f"{record.run.id} {task.key} dispatched over {states}")
        if record.run.status is not RunStatus.RUNNING or record.run.cancel_requested_at is not None:
            self.violate("paused-starts-nothing", f"{record.run.id} is {record.run.status}; {task.key} was dispatched")

    def _check_run(self, record: RunRecord) -> None:
        run, tasks = record.run, record.tasks.values()
        expected = state_of(record)
        if (expected is None) == run.status.is_final or (expected is not None and run.status is not expected):
            states = {str(task.key): str(task.status) for task in tasks}
            self.violate("run-state", f"{run.id} is {run.status} with {states}")
        for task in tasks:
            if task.status is TaskStatus.PENDING:
                above = [record.tasks[TaskKey(name)] for name in record.spec(task.key).depends_on]
                if must_skip(record.spec(task.key), above):
                    self.violate("skip-at-once", f"{run.id} {task.key} waits for what cannot come")

    def _check_released(self, record: RunRecord) -> None:
        if not record.run.status.is_final and (record.run.status is not RunStatus.PAUSED or record.active_attempts()):
            self.violate("one-owner", f"{record.run.id} was left without an owner while {record.run.status}")
        record.owner = None

    def _check_commands(self, before: RunRecord, record: RunRecord, change: RunChanges) -> None:
        last = None
        for number in change.commands_done:
            last = record.commands.pop(number, None)
            if last is None:
                self.violate("commands", f"{record.run.id}: command {number} was done with twice or never asked")
            elif any(waiting < number for waiting in record.commands):
                self.violate("commands", f"{record.run.id}: command {number} overtook {min(record.commands)}")
        if last is not None and not is_applied(last, before, record):
            self.violate("commands", f"{record.run.id}: {last.kind} is done with and was not applied")

    def _check_alerts(self, before: RunRecord, record: RunRecord, change: RunChanges, tasks: Sequence[Task]) -> None:
        alerted = [alert.task for alert in change.alerts if not alert.asks and not alert.is_over_budget]
        rounds = record.run.round - before.run.round
        for task in alerted:
            status = record.run.status if task is None else record.tasks[task].status
            # If a retry in the same commit has started the next round, the alert belongs to the round before.
            subject = (record.run.round - (rounds > 0 and status != "failed"), task)
            if subject in record.alerted and rounds < 2:
                self.violate("one-alert", f"{record.run.id}: a second alert about {task}")
            record.alerted.add(subject)
        for row in tasks:
            old = before.tasks.get(row.key)
            is_new = row.status is TaskStatus.FAILED and (old is None or old.status is not TaskStatus.FAILED)
            if is_new and row.key.index is None and row.key not in alerted:
                self.violate("one-alert", f"{record.run.id}: no alert about {row.key}, which failed")

    def _check_limits(self, answer: Committed, before: Mapping[str, int]) -> None:
        """`before` is what was in use before this commit."""
        if not self.ledger.limits:
            return
        used = self.ledger.used()
        surely = self.ledger.used(self.ledger.were_set_aside)  # others may have taken their slots in the meantime
        for name, slots in self.ledger.limits.items():
            taken, taken_before = used.get(name, 0), before.get(name, 0)
            most = max(taken_before, self._most_used_since_asked(name)) + taken - taken_before
            self._used.setdefault(name, []).append((self._clock(), taken))
            if surely.get(name, 0) > slots:
                self.violate("limits", f"{name} has {slots} slots and {surely[name]} are taken")
            elif name in answer.full and most < slots:
                self.violate("limits", f"{name} has {slots} slots, {taken} are taken and no launch was admitted")

    def _most_used_since_asked(self, name: str) -> int:
        """The most slots in use at any moment since the call began that takes effect now, as far as they are known.

        A store whose calls take time looks at others' slots at one of these moments, and adds what the call itself changes.
        """
        most = 0
        if self.asked_at is None:
            return most
        for since, used in reversed(self._used.get(name, ())):
            most = max(most, used)
            if since < self.asked_at:
                break
        return most

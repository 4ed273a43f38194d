"""The rest of the language broken on purpose: fan-out, conditions, rates, approvals, the cache, deferral."""

from __future__ import annotations

from typing import Any

from ork.core.commands import parse_key
from ork.core.transitions import TaskStep, next_task_status
from ork.model.record import replaced
from ork.model.task import TaskStatus
from ork.model.workflow import Approval
from ork.state.admission import TokenBucket
from tests.simulation.mutants.mutations import Make

_committer: list[Any] = [None]  # whose commit is being written: shared by the two halves of `rates_of_their_own`


def no_concurrency(original: Any) -> Any:
    def take_slots(self: Any) -> Any:
        self.concurrency = None
        return original(self)

    return take_slots


def end_with_one_instance(original: Any) -> Any:
    def note_end(self: Any, instance: Any) -> None:
        original(self, instance)
        self.unfinished = 0

    return note_end


def overlook_failed_instances(original: Any) -> Any:
    def note_end(self: Any, instance: Any) -> None:
        original(self, instance)
        self.failed = None

    return note_end


def fan_out_again(original: Any) -> Any:
    """A rebuilt machine does not see that a task has fanned out already."""

    def survey_node(self: Any, node: Any, task: Any) -> None:
        if task.status is TaskStatus.RUNNING and task.instances is not None:
            self._rows.tasks[task.key] = replaced(task, status=TaskStatus.PENDING, instances=None)
        else:
            original(self, node, task)

    return survey_node


def one_item_less(original: Any) -> Any:
    return lambda items, width: original(items[:-1] if items and len(items) > 1 else items, width)


def reset_siblings(original: Any) -> Any:
    def tasks_to_retry(workflow: Any, tasks: Any, command: Any) -> Any:
        named = None if command.task is None else parse_key(command.task).name
        return original(workflow, tasks, replaced(command, task=named))

    return tasks_to_retry


def ask_people_again(_original: Any) -> Any:
    def waits_for_approval(self: Any, command: Any) -> bool:
        task = self.tasks.get(parse_key(command.task or ""))
        return task is not None and isinstance(self.spec(task.key).action, Approval) and bool(task.started_at)

    return waits_for_approval


def end_what_has_ended(_original: Any) -> Any:
    """With `ask_people_again`: the last word counts, not the first."""

    def next_status(subject: Any, status: Any, step: Any) -> Any:
        ends = {TaskStep.SUCCEED: TaskStatus.SUCCESS, TaskStep.FAIL: TaskStatus.FAILED}
        return ends[step] if status.is_final and step in ends else next_task_status(subject, status, step)

    return next_status


def remember_committer(original: Any) -> Any:
    async def commit(self: Any, scheduler: Any, changes: Any, now: Any) -> Any:
        _committer[0] = scheduler
        return await original(self, scheduler, changes, now)

    return commit


def rates_of_their_own(_original: Any) -> Any:
    """With `remember_committer`: each scheduler keeps its own account of what it has started."""
    accounts: dict[Any, tuple[TokenBucket, float]] = {}

    def open_bucket(db: Any, name: str, rate: Any) -> TokenBucket:
        _, now = db.clock()
        account = (id(db), _committer[0], name)
        last, at = accounts.get(account, (None, now))
        bucket = TokenBucket(rate, rate.count if last is None else last.tokens, now - at)
        accounts[account] = (bucket, now)
        return bucket

    return open_bucket


def changed_statement(name: str, old: str, new: str) -> Make:
    def make(original: Any) -> Any:
        def sql(wanted: str) -> str:
            text = str(original(wanted))
            if wanted == name and old not in text:
                raise RuntimeError(f"language_mutations.py: {name} has no {old!r}")
            return text.replace(old, new) if wanted == name else text

        return sql

    return make


def same_whatever_it_was_given(_original: Any) -> Any:
    def cache_key(_self: Any, question: Any, owned: Any, spec: Any) -> str:
        return f"{owned.machine.workflow.name} {spec.name} {question.key.index}"

    return cache_key


def never_fresh(original: Any) -> Any:
    def make_ready(self: Any, key: Any, now: Any) -> None:
        run = self._rows.run
        self._rows.run = replaced(run, fresh=False)
        original(self, key, now)
        self._rows.run = replaced(self._rows.run, fresh=run.fresh)

    return make_ready


def leave_those_who_wait(original: Any) -> Any:
    async def adopt(self: Any, attempts: Any, *rest: Any) -> None:
        await original(self, [pair for pair in attempts if pair[0].waits_for is None], *rest)

    return adopt


def deferred_needs_a_worker(original: Any) -> Any:
    async def have_watched(self: Any, attempts: Any) -> None:
        await original(self, [attempt for attempt in attempts if attempt.waits_for is None])

    return have_watched


def nobody_runs_out_of_time(_original: Any) -> Any:
    return lambda _self, _task: None


def forget_the_next_timer(original: Any) -> Any:
    have_one: dict[int, Any] = {}  # machines, kept so that no other gets their number

    def set_timer(self: Any, run: Any, owned: Any) -> None:
        if id(owned.machine) not in have_one and owned.machine.next_timer is not None:
            have_one[id(owned.machine)] = owned.machine
            original(self, run, owned)

    return set_timer


def nobody_waits(_original: Any) -> Any:
    return property(lambda _self: 0)


def another_child_each_time(original: Any) -> Any:
    counts: dict[Any, int] = {}

    def child(attempt: Any) -> Any:
        counts[attempt] = counts.get(attempt, 0) + 1
        return original(attempt._replace(number=attempt.number + 1000 * counts[attempt]))

    return child


def leave_the_child(original: Any) -> Any:
    async def stop(self: Any, attempts: Any, *, at_once: bool) -> None:
        for attempt in attempts:
            if attempt.key in self._waits and self._waits[attempt.key].run is not None:
                self._drop(self._waits[attempt.key])
        await original(
            self, [attempt for attempt in attempts if "run" not in (attempt.waits_for or "")], at_once=at_once
        )

    return stop

"""Invariants of fan-out, conditions, approvals, the cache and partial retries: an independent copy of the rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from ork.core.commands import parse_key
from ork.model.ids import RunId, TaskKey
from ork.model.record import Record
from ork.model.run import CommandKind, RunCommand
from ork.model.task import FailureKind, Output, Task, TaskStatus
from ork.model.workflow import Approval, CompiledWorkflow, TaskSpec
from ork.testing.ledger import RunRecord, may_start, slot_holders
from ork.testing.values import Values

CACHED = "cached: the same as in run "


class _Worked(Record):
    """A success that an equal task may reuse, and its inputs."""

    run: RunId
    key: TaskKey
    output: Output | None
    given: str


class LanguageChecks:
    def __init__(self, values: Values, violate: Callable[[str, str], None]) -> None:
        self._values = values
        self._violate = violate
        self._worked: dict[str, list[_Worked]] = {}

    # ── beginning ────────────────────────────────────────────────────────────────────────────────

    def check_begun(self, record: RunRecord, task: Task) -> None:
        """Check that rule and conditions of a task that no longer waits hold in the same commit."""
        spec = record.spec(task.key)
        above = [record.tasks[TaskKey(name)] for name in spec.depends_on]
        if not may_start(spec, above):
            states = {str(other.key): str(other.status) for other in above}
            self._violate("dispatch-rule", f"{record.run.id} {task.key} is {task.status} over {states}")
        elif not is_hopeless(task) and not self.conditions_hold(record, spec):
            self._violate(
                "conditions", f"{record.run.id} {task.key} is {task.status} against {self._why(record, spec)}"
            )

    def conditions_hold(self, record: RunRecord, spec: TaskSpec) -> bool:
        return all(self._values.holds(record, condition) for condition in spec.when)

    def may_skip(self, record: RunRecord, task: Task) -> bool:
        """True if a condition does not hold, or if the instance is not needed."""
        spec = record.spec(task.key)
        if task.key.index is not None:
            group = record.tasks[TaskKey(task.key.name)]
            return group.status.is_final or group.instances is None or task.key.index >= group.instances
        above = [record.tasks[TaskKey(name)] for name in spec.depends_on]
        return may_start(spec, above) and not self.conditions_hold(record, spec)

    def check_hopeless(self, record: RunRecord, task: Task) -> None:
        """Check a task that failed without an attempt: allowed only if there is no list to fan out over."""
        spec = record.spec(task.key)
        if task.key.index is not None or not spec.fans_out or self._values.items(record, spec) is not None:
            self._violate("true-failure", f"{record.run.id} {task.key} never began: {task.failure}")

    def _why(self, record: RunRecord, spec: TaskSpec) -> list[str]:
        return [f"{each} (it is {self._values.follow(record, each.ref)!r})" for each in spec.when]

    # ── fan-out ──────────────────────────────────────────────────────────────────────────────────

    def check_group(self, before: RunRecord, record: RunRecord, group: Task) -> None:
        old = before.tasks.get(group.key)
        if group.attempt:
            self._violate("group-state", f"{record.run.id} {group.key} has fanned out and has attempts of its own")
        if group.instances is not None and (old is None or old.instances is None):
            self._check_expansion(record, group)
        if old is not None and old.status is group.status is TaskStatus.RUNNING and old != group:
            self._violate("fan-out", f"{record.run.id} {group.key} has fanned out twice")
        instances = self._instances(record, group)
        if group.status is TaskStatus.SUCCESS and any(each.status is not TaskStatus.SUCCESS for each in instances):
            self._violate("group-state", f"{record.run.id} {group.key} is success over {_states(instances)}")
        if group.status is TaskStatus.FAILED and instances:
            self._check_failed_group(record, group, instances)

    def check_whole(self, record: RunRecord, name: str) -> None:
        """Check a fan-out after a commit that changed the task or one of its instances."""
        group, spec = record.tasks[TaskKey(name)], record.specs[name]
        instances = self._instances(record, group)
        active = [each for each in instances if each.status.is_active]
        if active and group.status is not TaskStatus.RUNNING:
            self._violate("group-state", f"{record.run.id} {name} is {group.status} while {active[0].key} is active")
        if group.status is TaskStatus.RUNNING and all(each.status.is_final for each in instances):
            self._violate("group-state", f"{record.run.id} {name} goes on over {_states(instances)}")
        if spec.concurrency is not None and self._at_once(record, active) > spec.concurrency:
            self._violate("concurrency", f"{record.run.id} {name} allows {spec.concurrency}: {_states(active)}")

    def _at_once(self, record: RunRecord, active: Sequence[Task]) -> int:
        """How many of these instances may run at the same time. Those of launch groups hold the slots of their group."""
        attempts = [attempt for task in active if (attempt := record.current_attempt(task)) is not None]
        alone = sum(attempt.group is None for attempt in attempts)
        return alone + len(slot_holders([attempt for attempt in attempts if attempt.group is not None]))

    def _check_expansion(self, record: RunRecord, group: Task) -> None:
        expected = self._values.items(record, record.spec(group.key))
        found = [each.item for each in self._instances(record, group)]
        if found != expected:
            self._violate("fan-out", f"{record.run.id} {group.key} became {found} of {expected}")

    def _check_failed_group(self, record: RunRecord, group: Task, instances: Sequence[Task]) -> None:
        failed = [each.key.index for each in instances if each.status is TaskStatus.FAILED]
        message = group.failure.message if group.failure is not None else ""
        if not all(each.status.is_final for each in instances):
            self._violate("group-state", f"{record.run.id} {group.key} failed over {_states(instances)}")
        elif not any(message.startswith(f"instance {index} failed") for index in failed):
            self._violate("group-state", f"{record.run.id} {group.key}: {message!r}; failed are {failed}")

    def _instances(self, record: RunRecord, group: Task) -> list[Task]:
        keys = (TaskKey(group.key.name, index) for index in range(group.instances or 0))
        return [record.tasks[key] for key in keys if key in record.tasks]

    # ── people ───────────────────────────────────────────────────────────────────────────────────

    def check_decision(
        self, before: RunRecord, record: RunRecord, task: Task, done: Sequence[RunCommand], now: datetime
    ) -> None:
        """Check that an approval ended by a user's decision or its timeout."""
        asked = {command.kind for command in done if parse_key(command.task or "") == task.key}
        old = before.tasks.get(task.key)
        if task.attempt:
            self._violate("approval", f"{record.run.id} {task.key} was launched")
        if task.status is TaskStatus.SUCCESS and CommandKind.APPROVE not in asked:
            self._violate("approval", f"{record.run.id} {task.key} is approved without a decision")
        if task.status is not TaskStatus.FAILED or task.failure is None:
            return
        if task.failure.kind is FailureKind.REJECTED and CommandKind.REJECT not in asked:
            self._violate("approval", f"{record.run.id} {task.key} is rejected without a decision")
        if task.failure.kind is FailureKind.TIMEOUT:
            timeout, began = record.spec(task.key).timeout, old.started_at if old is not None else None
            if timeout is None or began is None or began + timedelta(seconds=timeout) > now:
                self._violate("approval", f"{record.run.id} {task.key} began {began} and timed out at {now}")

    def check_retry(self, before: RunRecord, record: RunRecord, task: Task, command: RunCommand) -> None:
        """Check that a retry changes only the tasks that it names."""
        old = before.tasks.get(task.key)
        if old is not None and old.status.is_final and old != task and not _is_meant(record.workflow, old, command):
            asked = "everything" if command.everything else command.task or "what did not succeed"
            self._violate("retry-scope", f"{record.run.id} {task.key} was {old.status}; the retry was of {asked}")

    # ── the cache ────────────────────────────────────────────────────────────────────────────────

    def note_success(self, record: RunRecord, task: Task) -> None:
        if record.spec(task.key).cache is not None:
            worked = _Worked(record.run.id, task.key, task.output, self._given(record, task))
            self._worked.setdefault(record.run.workflow, []).append(worked)

    def check_cached(self, record: RunRecord, task: Task) -> None:
        """Check that a success without an attempt comes from another run with the same inputs."""
        source = (task.reason or "").removeprefix(CACHED)
        wanted = _Worked(RunId(source), task.key, task.output, self._given(record, task))
        if record.spec(task.key).cache is None or record.run.fresh:
            self._violate("cache", f"{record.run.id} {task.key} asked for nothing from the cache: {task.reason}")
        elif task.failure is not None or task.retry_at is not None:
            self._violate("cache", f"{record.run.id} {task.key} is a success with {task.failure}")
        elif wanted not in self._worked.get(record.run.workflow, ()):
            self._violate("cache", f"{record.run.id} {task.key} is {task.reason!r}, which made no {task.output}")

    def _given(self, record: RunRecord, task: Task) -> str:
        above = record.spec(task.key).depends_on
        outputs = {name: self._values.output(record, TaskKey(name)) for name in above}
        return repr((record.run.params, task.item, outputs))


def has_tried(task: Task) -> bool:
    """True if the task had an attempt in this round."""
    return task.attempt > task.earlier_attempts


def is_cached(task: Task) -> bool:
    return (task.reason or "").startswith(CACHED)


def is_hopeless(task: Task) -> bool:
    is_input = task.failure is not None and task.failure.kind is FailureKind.INPUT
    return task.status is TaskStatus.FAILED and is_input and not has_tried(task)


def is_decided_by_people(spec: TaskSpec) -> bool:
    return isinstance(spec.action, Approval)


def _is_meant(workflow: CompiledWorkflow, task: Task, command: RunCommand) -> bool:
    if command.everything:
        return True
    if command.task is None:
        return task.status is not TaskStatus.SUCCESS
    named = parse_key(command.task)
    if task.key.name == named.name:
        return named.index is None or task.key.index in (None, named.index)
    return named.name in _above(workflow, task.key.name)


def _above(workflow: CompiledWorkflow, name: str) -> set[str]:
    """All transitive dependencies of the task. Tasks follow those that they depend on."""
    found = {name}
    for spec in reversed(workflow.tasks):
        if spec.name in found:
            found |= set(spec.depends_on)
    return found - {name}


def _states(tasks: Sequence[Task]) -> dict[str, str]:
    return {str(task.key): str(task.status) for task in tasks}

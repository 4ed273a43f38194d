"""An independent record of what the store must contain, derived only from the calls that it answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime

from ork.core.commands import parse_key
from ork.core.limits import EVERYTHING
from ork.model.ids import AttemptKey, RunId, SchedulerId, TaskKey
from ork.model.quarantine import QuarantinedRun
from ork.model.record import replaced
from ork.model.run import CommandKind, NewRun, Run, RunCommand, RunStatus
from ork.model.task import Attempt, AttemptStatus, Task, TaskStatus
from ork.model.workflow import CompiledWorkflow, RunIf, TaskSpec
from ork.state.quarantine import note_of
from ork.state.records import Committed


@dataclass(slots=True)
class RunRecord:
    """One run as committed. `cancel_stands` is set from an accepted cancel until a user's retry."""

    run: Run
    workflow: CompiledWorkflow
    owner: SchedulerId | None = None
    epoch: int = 0
    tasks: dict[TaskKey, Task] = field(default_factory=dict)
    attempts: dict[AttemptKey, Attempt] = field(default_factory=dict)
    commands: dict[str, RunCommand] = field(default_factory=dict)
    cancel_stands: bool = False
    alerted: set[tuple[int, TaskKey | None]] = field(default_factory=set)
    specs: Mapping[str, TaskSpec] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.specs = self.specs or {spec.name: spec for spec in self.workflow.tasks}

    def spec(self, key: TaskKey) -> TaskSpec:
        return self.specs[key.name]

    def whole_tasks(self) -> list[Task]:
        """Tasks without instances of fan-outs."""
        return [task for key, task in self.tasks.items() if key.index is None]

    def current_attempt(self, task: Task) -> Attempt | None:
        return self.attempts.get(AttemptKey(self.run.id, task.key, task.attempt))

    def active_attempts(self) -> list[Attempt]:
        return [attempt for attempt in self.attempts.values() if not attempt.status.is_final]

    def set_aside(self, broken: QuarantinedRun, now: datetime) -> None:
        """Apply what the store does to a run that is quarantined."""
        run, note = self.run, note_of(broken.reason, broken.is_cancelled)
        self.owner = None
        self.commands.clear()
        if not broken.is_cancelled:
            self.run = replaced(run, status=run.status if run.status.is_final else RunStatus.PAUSED, note=note)
            return
        self.run = replaced(run, status=RunStatus.CANCELLED, finished_at=now, note=note)
        ended = {"status": TaskStatus.CANCELLED, "reason": note, "finished_at": now, "retry_at": None}
        self.tasks |= {key: replaced(task, **ended) for key, task in self.tasks.items() if not task.status.is_final}
        stopped = {"status": AttemptStatus.CANCELLED, "finished_at": now}
        self.attempts |= {attempt.key: replaced(attempt, **stopped) for attempt in self.active_attempts()}


@dataclass(slots=True)
class Ledger:
    runs: dict[RunId, RunRecord] = field(default_factory=dict)
    leases: dict[SchedulerId, float] = field(default_factory=dict)  # end of each lease, by the store's clock
    limits: dict[str, int] = field(default_factory=dict)
    set_aside: set[RunId] = field(default_factory=set)  # no scheduler owns these until a user sends a command
    were_set_aside: set[RunId] = field(default_factory=set)  # quarantined at any time

    def active_attempts(self) -> list[Attempt]:
        return [attempt for record in self.runs.values() for attempt in record.active_attempts()]

    def used(self, apart_from: Set[RunId] = frozenset()) -> dict[str, int]:
        """Slots in use by limit. Attempts that wait for jobs use none, nor do those of quarantined runs."""
        used: dict[str, int] = {}
        takes_none = self.set_aside | apart_from
        for attempt in slot_holders([each for each in self.active_attempts() if each.key.run not in takes_none]):
            for name in limits_of(attempt):
                used[name] = used.get(name, 0) + 1
        return used

    def is_held(self, record: RunRecord, time: float) -> bool:
        return record.owner is not None and self.leases.get(record.owner, time) > time


def slot_holders(attempts: Sequence[Attempt]) -> list[Attempt]:
    """One attempt for each slot that these hold: of a group, no more than may run at the same time."""
    holders: list[Attempt] = []
    of_group: dict[str, int] = {}
    for attempt in attempts:
        if attempt.waits_for is not None:
            continue
        if attempt.group is not None:
            of_group[attempt.group.id] = of_group.get(attempt.group.id, 0) + 1
            if of_group[attempt.group.id] > attempt.group.parallelism:
                continue
        holders.append(attempt)
    return holders


def as_granted(attempt: Attempt, answer: Committed) -> Attempt:
    """The attempt as it must have been written: its group may have got fewer slots than it asked for."""
    if attempt.group is None:
        return attempt
    return replaced(attempt, group=replaced(attempt.group, parallelism=answer.parallelism[attempt.group.id]))


def limits_of(attempt: Attempt) -> list[str]:
    names = [EVERYTHING, f"executor:{attempt.executor}"]
    return names if attempt.pool is None else [*names, f"pool:{attempt.pool}"]


def may_start(spec: TaskSpec, above: Sequence[Task]) -> bool:
    """An independent copy of the rule, without counters."""
    if not all(task.status.is_final for task in above):
        return False
    match spec.run_if:
        case RunIf.ALL_SUCCESS:
            return all(task.status is TaskStatus.SUCCESS for task in above)
        case RunIf.ANY_SUCCESS:
            return any(task.status is TaskStatus.SUCCESS for task in above)
        case RunIf.ANY_FAILED:
            return any(comes_of_failure(task) for task in above)
        case RunIf.ALL_DONE | RunIf.ALWAYS:
            return True


def must_skip(spec: TaskSpec, above: Sequence[Task]) -> bool:
    """True if the rule can no longer hold (all_success need not wait for the rest)."""
    if spec.run_if is RunIf.ALL_SUCCESS:
        return any(task.status.is_final and task.status is not TaskStatus.SUCCESS for task in above)
    return all(task.status.is_final for task in above) and not may_start(spec, above)


def comes_of_failure(task: Task) -> bool:
    return task.status is TaskStatus.FAILED or (task.status is not TaskStatus.SUCCESS and task.cause is not None)


def state_of(record: RunRecord) -> RunStatus | None:
    """The status that follows from the tasks alone; None while the run is not finished."""
    tasks = list(record.tasks.values())
    if not all(task.status.is_final for task in tasks):
        return None
    if record.run.cancel_requested_at is not None:
        return RunStatus.CANCELLED
    if not tasks:
        return None
    found = {task.status for task in record.whole_tasks()}
    if TaskStatus.FAILED in found:
        return RunStatus.FAILED
    return RunStatus.CANCELLED if TaskStatus.CANCELLED in found else RunStatus.SUCCESS


def comparable(run: Run) -> Run:
    """The run without its cancel request, which users write and schedulers only copy."""
    return replaced(run, cancel_requested_at=None)


def is_applied(command: RunCommand, before: RunRecord, after: RunRecord) -> bool:
    """True if the commit that changed `before` to `after` did what the command requests."""
    kind, run = command.kind, after.run
    if kind is CommandKind.CANCEL:
        pending = any(task.status is TaskStatus.PENDING for task in after.tasks.values())
        return run.status.is_final or (run.cancel_requested_at is not None and not pending)
    if kind is CommandKind.PAUSE:
        return run.status is not RunStatus.RUNNING
    if kind is CommandKind.RESUME:
        return run.status is not RunStatus.PAUSED
    if kind in (CommandKind.APPROVE, CommandKind.REJECT):
        task = before.tasks.get(parse_key(command.task or ""))
        return task is None or task.status is not TaskStatus.RUNNING or after.tasks[task.key].status.is_final
    return kind is not CommandKind.RETRY or run.round > before.run.round or not before.run.status.is_final


def slots_of(run: NewRun) -> list[tuple[str, str]]:
    """Values that must be unique per workflow: the idempotency key and the scheduled time."""
    slots = [] if run.key is None else [(run.workflow, f"key {run.key}")]
    return slots if run.scheduled_for is None else [*slots, (run.workflow, f"due {run.scheduled_for.isoformat()}")]

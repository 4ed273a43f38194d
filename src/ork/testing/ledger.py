"""A second set of books: what the store must hold, kept from the calls it answered and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ork.core.limits import EVERYTHING
from ork.model.ids import AttemptKey, RunId, SchedulerId, TaskKey
from ork.model.run import Run, RunCommand
from ork.model.task import Attempt, Task, TaskStatus
from ork.model.workflow import CompiledWorkflow, RunIf, TaskSpec


@dataclass(slots=True)
class RunRecord:
    """One run as committed. `cancel_stands` from an accepted cancel until a person's retry."""

    run: Run
    workflow: CompiledWorkflow
    owner: SchedulerId | None = None
    epoch: int = 0
    tasks: dict[TaskKey, Task] = field(default_factory=dict)
    attempts: dict[AttemptKey, Attempt] = field(default_factory=dict)
    commands: dict[int, RunCommand] = field(default_factory=dict)
    cancel_stands: bool = False
    alerted: set[tuple[int, TaskKey | None]] = field(default_factory=set)
    specs: Mapping[str, TaskSpec] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.specs = self.specs or {spec.name: spec for spec in self.workflow.tasks}

    def spec(self, key: TaskKey) -> TaskSpec:
        return self.specs[key.name]

    def whole_tasks(self) -> list[Task]:
        """Without the instances of those that have fanned out."""
        return [task for key, task in self.tasks.items() if key.index is None]

    def current_attempt(self, task: Task) -> Attempt | None:
        return self.attempts.get(AttemptKey(self.run.id, task.key, task.attempt))

    def active_attempts(self) -> list[Attempt]:
        return [attempt for attempt in self.attempts.values() if not attempt.status.is_final]


@dataclass(slots=True)
class Ledger:
    runs: dict[RunId, RunRecord] = field(default_factory=dict)
    leases: dict[SchedulerId, float] = field(default_factory=dict)  # until when, by the store's clock
    limits: dict[str, int] = field(default_factory=dict)

    def active_attempts(self) -> list[Attempt]:
        return [attempt for record in self.runs.values() for attempt in record.active_attempts()]

    def used(self) -> dict[str, int]:
        """Slots taken under each limit; whoever waits for a job takes none."""
        used: dict[str, int] = {}
        for attempt in self.active_attempts():
            for name in limits_of(attempt) if attempt.waits_for is None else ():
                used[name] = used.get(name, 0) + 1
        return used

    def is_held(self, record: RunRecord, moment: float) -> bool:
        return record.owner is not None and self.leases.get(record.owner, moment) > moment


def limits_of(attempt: Attempt) -> list[str]:
    names = [EVERYTHING, f"executor:{attempt.executor}"]
    return names if attempt.pool is None else [*names, f"pool:{attempt.pool}"]


def may_start(spec: TaskSpec, above: Sequence[Task]) -> bool:
    """The rule, written down a second time and without any counters."""
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
    """Whatever happens from here on, the rule cannot hold any more (all_success needs not wait for the rest)."""
    if spec.run_if is RunIf.ALL_SUCCESS:
        return any(task.status.is_final and task.status is not TaskStatus.SUCCESS for task in above)
    return all(task.status.is_final for task in above) and not may_start(spec, above)


def comes_of_failure(task: Task) -> bool:
    return task.status is TaskStatus.FAILED or (task.status is not TaskStatus.SUCCESS and task.cause is not None)

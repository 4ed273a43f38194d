"""The rows of one run in memory, and the decisions since they were last taken: changed rows and effects."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from ork.core.effects import Alert, Effect
from ork.core.launch_groups import LaunchGroups
from ork.core.transitions import RunStep, next_run_status
from ork.model.ids import AttemptKey, TaskKey
from ork.model.record import Record, replaced
from ork.model.run import Run
from ork.model.task import Attempt, Task, TaskStatus

if TYPE_CHECKING:
    from ork.core.budget import BudgetMeter


class Decisions(Record):
    """Rows to write, and effects to carry out after the commit. `run` is None if its row did not change."""

    run: Run | None
    tasks: tuple[Task, ...]
    attempts: tuple[Attempt, ...]
    effects: tuple[Effect, ...]

    def __bool__(self) -> bool:
        return bool(self.run or self.tasks or self.attempts or self.effects)


class PendingDecisions:
    """Collects decisions until they are taken. A row that changed twice is kept in its last state."""

    def __init__(self) -> None:
        self.run: Run | None = None
        self.tasks: dict[TaskKey, Task] = {}
        self.attempts: dict[AttemptKey, Attempt] = {}
        self.effects: list[Effect] = []

    def finish(self) -> Decisions:
        return Decisions(self.run, tuple(self.tasks.values()), tuple(self.attempts.values()), tuple(self.effects))


class RunRows:
    def __init__(
        self, run: Run, tasks: Iterable[Task], attempts: Iterable[Attempt], meter: BudgetMeter | None = None
    ) -> None:
        self.run = run
        self.meter = meter
        self.tasks: dict[TaskKey, Task] = {task.key: task for task in tasks}
        self.active: dict[TaskKey, Attempt] = {attempt.key.task: attempt for attempt in attempts}
        self.launch_groups = LaunchGroups(self.active.values())
        self.unfinished = sum(not task.status.is_final for task in self.tasks.values())
        self._pending = PendingDecisions()

    @property
    def first_failed(self) -> Task | None:
        """The first task, in workflow order, that failed. Instances are not considered."""
        return self._first(TaskStatus.FAILED)

    def _first(self, status: TaskStatus) -> Task | None:
        whole = (task for key, task in self.tasks.items() if key.index is None)
        return next((task for task in whole if task.status is status), None)

    def take(self) -> Decisions:
        pending, self._pending = self._pending, PendingDecisions()
        return pending.finish()

    def add(self, tasks: Iterable[Task]) -> None:
        """Add new pending tasks."""
        new = {task.key: task for task in tasks}
        self.unfinished += len(new)
        self.tasks |= new
        self._pending.tasks |= new

    def write(self, task: Task) -> None:
        before = self.tasks.get(task.key)
        self.unfinished += (not task.status.is_final) - (before is not None and not before.status.is_final)
        self.tasks[task.key] = self._pending.tasks[task.key] = task

    def write_attempt(self, attempt: Attempt) -> None:
        """Write an attempt, and drop it from the active ones if it has ended."""
        if attempt.group is not None:
            self.launch_groups.count(self.active.get(attempt.key.task), attempt)
        if attempt.status.is_final:
            self.active.pop(attempt.key.task, None)
        else:
            self.active[attempt.key.task] = attempt
        self._pending.attempts[attempt.key] = attempt
        if self.meter is not None:
            self.meter.note(attempt)

    def write_run(self, step: RunStep | None, **fields: object) -> None:
        status = self.run.status if step is None else next_run_status(self.run.id, self.run.status, step)
        self.run = self._pending.run = replaced(self.run, status=status, **fields)

    def end_run(self, now: datetime) -> None:
        """Set the run's final status from the status of its tasks. A run that is already final is left unchanged."""
        if self.run.status.is_final:
            return
        failed = self.first_failed
        if self.run.cancel_requested_at is not None:
            self.write_run(RunStep.CANCEL, finished_at=now)
        elif failed is not None:
            error = f"task `{failed.key}` failed: {failed.failure.message if failed.failure else 'unknown'}"
            self.write_run(RunStep.FAIL, finished_at=now, error=error)
            # The alert of a run has no other field that names the failed task.
            self.add_effect(Alert(None, replaced(failed.failure, message=error) if failed.failure else None))
        elif self._first(TaskStatus.CANCELLED) is not None:  # the run was cancelled, and only another task was retried
            self.write_run(RunStep.CANCEL, finished_at=now)
        else:
            self.write_run(RunStep.SUCCEED, finished_at=now)

    def add_effect(self, effect: Effect) -> None:
        self._pending.effects.append(effect)

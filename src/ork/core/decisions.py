"""Decisions of a run machine that are not committed yet."""

from __future__ import annotations

from ork.core.effects import Effect
from ork.model.ids import AttemptKey, TaskKey
from ork.model.record import Record
from ork.model.run import Run
from ork.model.task import Attempt, Task


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

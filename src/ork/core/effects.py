"""What the machine wants done to the world, in the imperative. Carried out only after its commit."""

from __future__ import annotations

from typing import TypeAlias

from ork.model.ids import TaskKey
from ork.model.notice import NoticeKind
from ork.model.record import Record
from ork.model.task import Attempt, Failure, GiveUp, Task
from ork.model.workflow import Rate


class Wish(Record):
    """A launch the machine asks for. The commit admits it if every limit it counts against has room.

    `task` and `attempt` are the rows as they will be once admitted; nothing is written or started otherwise. The task's
    differs from the pending row before it only in what a launch changes.
    """

    task: Task
    attempt: Attempt
    priority: int = 0
    rate: tuple[str, Rate] | None = None  # the task's own rate limit, under the name it is kept by


class Launch(Record):
    """Start this attempt (create-or-get under its external name; repeatable)."""

    attempt: Attempt


class Stop(Record):
    """End this attempt: shut its gate, write the stop request, stop what runs; report Closed when it is over."""

    attempt: Attempt
    why: GiveUp


class Alert(Record):
    """Tell people, once, about a task that failed for good, a run that failed, or a task that `asks` for approval."""

    task: TaskKey | None
    failure: Failure | None
    asks: bool = False

    @property
    def kind(self) -> NoticeKind:
        if self.asks:
            return NoticeKind.APPROVAL
        return NoticeKind.RUN if self.task is None else NoticeKind.TASK


Effect: TypeAlias = Launch | Stop | Alert

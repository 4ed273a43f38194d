"""What the machine asks the scheduler to do, always after the commit."""

from __future__ import annotations

from typing import TypeAlias

from ork.model.ids import TaskKey
from ork.model.notice import NoticeKind
from ork.model.record import Record
from ork.model.task import Attempt, Failure, GiveUp, Task
from ork.model.workflow import Rate


class LaunchRequest(Record):
    """A launch that the machine asks for. The commit admits it if every limit it counts against has capacity.

    `task` and `attempt` are the rows to write if it is admitted; otherwise nothing is written or started. The task row
    differs from the pending one only in the fields that a launch changes.
    """

    task: Task
    attempt: Attempt
    priority: int = 0
    rate: tuple[str, Rate] | None = None  # the task's own rate limit, and the name it is stored under


class Launch(Record):
    """Start this attempt. Create-or-get under its external name, so it can be repeated."""

    attempt: Attempt


class Stop(Record):
    """End this attempt: close its gate, write the stop request, stop its processes; Closed is fed when that is done."""

    attempt: Attempt
    why: GiveUp


class Alert(Record):
    """Send one alert about a failed task, a failed run, a task that waits for approval, or a run that exceeded its budget."""

    task: TaskKey | None
    failure: Failure | None
    asks: bool = False
    is_over_budget: bool = False

    @property
    def kind(self) -> NoticeKind:
        if self.asks:
            return NoticeKind.APPROVAL
        if self.is_over_budget:
            return NoticeKind.BUDGET
        return NoticeKind.RUN if self.task is None else NoticeKind.TASK


Effect: TypeAlias = Launch | Stop | Alert

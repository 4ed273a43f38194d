"""What the machine wants done to the world, in the imperative. Carried out only after its commit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from ork.model.ids import TaskKey
from ork.model.task import Attempt, Failure, GiveUp, Task
from ork.model.workflow import Rate


@dataclass(frozen=True, slots=True)
class Wish:
    """A launch the machine asks for. The commit admits it if every limit it counts against has room.

    `task` and `attempt` are the rows as they will be once admitted; nothing is written or started otherwise.
    """

    task: Task
    attempt: Attempt
    priority: int = 0
    rate: tuple[str, Rate] | None = None  # the task's own rate limit, under the name it is kept by


@dataclass(frozen=True, slots=True)
class Launch:
    """Start this attempt (create-or-get under its external name; repeatable)."""

    attempt: Attempt


@dataclass(frozen=True, slots=True)
class Stop:
    """End this attempt: shut its gate, write the stop request, stop what runs; report Closed when it is over."""

    attempt: Attempt
    why: GiveUp


@dataclass(frozen=True, slots=True)
class Alert:
    """Tell people, once, about a task that failed for good or a run that failed."""

    task: TaskKey | None
    failure: Failure | None


Effect: TypeAlias = Launch | Stop | Alert

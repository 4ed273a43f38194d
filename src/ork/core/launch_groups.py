"""Launch groups: instances of one task that a platform starts as one unit, and the slots that such a unit holds.

Each attempt of a group has its own row, gate, log, output and retry. Only its start and its slots are shared. A group's
rows hold all there is to know about it, so another scheduler can start it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from ork.core.effects import LaunchRequest
from ork.model.record import Record, replaced
from ork.model.task import Attempt
from ork.model.workflow import TaskSpec

GroupSize: TypeAlias = Callable[[TaskSpec], int]
"""Returns the largest launch group that a task's executor starts; 0 if it starts every attempt alone."""

NO_GROUPS: Mapping[str, int] = {}
RETRY_WINDOW_SECONDS = 15.0  # failed attempts of a group wait so long for others, to be started together again


def no_groups(_spec: TaskSpec) -> int:
    return 0


class LaunchGroup(Record, frozen=False):
    """An active group of one run. `working` counts its active attempts that do not wait for an external job."""

    task: str
    parallelism: int
    working: int = 0

    @property
    def slots(self) -> int:
        """The slots it holds: as many as run at the same time, or fewer when fewer are left."""
        return min(self.parallelism, self.working)


class LaunchGroups:
    """The active groups of one run."""

    def __init__(self, attempts: Iterable[Attempt]) -> None:
        self._groups: dict[str, LaunchGroup] = {}
        for attempt in attempts:
            self.count(None, attempt)

    def count(self, before: Attempt | None, attempt: Attempt) -> None:
        """Note what became of an attempt that was `before`; None: it is new."""
        place = attempt.group
        if place is None:
            return
        change = is_working(attempt) - (before is not None and before.key == attempt.key and is_working(before))
        if not change:
            return
        group = self._groups.setdefault(place.id, LaunchGroup(attempt.key.task.name, place.parallelism))
        group.working += change
        if not group.working:
            del self._groups[place.id]

    def working(self, id: str) -> int:
        return self._groups[id].working if id in self._groups else 0

    def slots_of(self, task: str) -> int:
        """The slots that the task's groups hold."""
        return sum(group.slots for group in self._groups.values() if group.task == task)


def is_working(attempt: Attempt) -> bool:
    """True if the attempt counts for the slots of its group."""
    return not attempt.status.is_final and attempt.waits_for is None


def slots_wanted(requests: Sequence[LaunchRequest]) -> int:
    """The slots that a group asks for."""
    group = requests[0].attempt.group
    return 1 if group is None else group.parallelism


def granted(attempt: Attempt, parallelism: Mapping[str, int]) -> Attempt:
    """The attempt as it is written: with the parallelism that its group was given."""
    group = attempt.group
    if group is None or parallelism[group.id] == group.parallelism:
        return attempt
    return replaced(attempt, group=replaced(group, parallelism=parallelism[group.id]))

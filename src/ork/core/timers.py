"""When something about a run's tasks is due: a retry, or the end of a person's patience."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from heapq import heappop, heappush

from ork.model.ids import TaskKey


class Timers:
    def __init__(self) -> None:
        self._waiting: list[tuple[datetime, int, TaskKey]] = []

    @property
    def next_at(self) -> datetime | None:
        return self._waiting[0][0] if self._waiting else None

    def set(self, at: datetime, ordinal: int, key: TaskKey) -> None:
        """Of several at the same moment the first task of the workflow is the first."""
        heappush(self._waiting, (at, ordinal, key))

    def pop_due(self, now: datetime) -> Iterator[tuple[datetime, TaskKey]]:
        """Those whose moment has come, also if they are set meanwhile."""
        while self._waiting and self._waiting[0][0] <= now:
            at, _, key = heappop(self._waiting)
            yield at, key

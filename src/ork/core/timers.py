"""When a task of a run is due: for a retry, or because an approval times out."""

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
        """Timers due at the same time fire in workflow order."""
        heappush(self._waiting, (at, ordinal, key))

    def pop_due(self, now: datetime) -> Iterator[tuple[datetime, TaskKey]]:
        """Yield due timers, including those set during the iteration."""
        while self._waiting and self._waiting[0][0] <= now:
            at, _, key = heappop(self._waiting)
            yield at, key

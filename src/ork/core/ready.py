"""Which task of a run is next: ready tasks by priority, and timers of tasks that become ready later.

Ready tasks wait in lanes, so that tasks waiting for a full pool do not delay others.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from heapq import heapify, heappop, heappush, heapreplace
from typing import TypeAlias

from ork.core.graph import TaskNode
from ork.core.limits import Capacity, Lane
from ork.model.ids import TaskKey

_Entry: TypeAlias = tuple[int, int, TaskKey]


class ReadyTasks:
    def __init__(self) -> None:
        self._lanes: dict[Lane, list[_Entry]] = {}  # never with an empty list
        self._keys: set[TaskKey] = set()  # a task queued twice would start again too early

    def push(self, key: TaskKey, node: TaskNode) -> None:
        if key in self._keys:
            return
        self._keys.add(key)
        heappush(self._lanes.setdefault(node.lane, []), (-node.spec.priority, node.ordinal, key))

    def pop_open(self, capacity: Capacity, min_priority: int | None = None) -> Iterator[TaskKey]:
        """Yield tasks within `capacity`, highest priority first, none below `min_priority`.

        The caller may reduce `capacity` meanwhile, but must not push. Each task leaves its lane when it is yielded. The
        lanes are compared once, not for every task.
        """
        heads = [(heap[0], lane) for lane, heap in self._lanes.items() if capacity.allows(lane)]
        heapify(heads)
        while heads:
            (highest_priority, _, key), lane = heads[0]
            if min_priority is not None and -highest_priority < min_priority:
                return
            if not capacity.allows(lane):
                heappop(heads)
                continue
            heap = self._lanes[lane]
            heappop(heap)
            if heap:
                heapreplace(heads, (heap[0], lane))
            else:
                heappop(heads)
                del self._lanes[lane]
            self._keys.discard(key)
            yield key

    def highest_priority(self, capacity: Capacity) -> int | None:
        """The highest priority within `capacity`, or None."""
        return max((-heap[0][0] for lane, heap in self._lanes.items() if capacity.allows(lane)), default=None)

    def has_any(self, capacity: Capacity) -> bool:
        return any(map(capacity.allows, self._lanes))


class Timers:
    """When a task is due: for a retry, or because an approval times out."""

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

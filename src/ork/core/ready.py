"""Tasks that may start, most urgent first, in lanes: a crowd waiting for a full pool is in nobody's way."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush, heapreplace
from typing import TypeAlias

from ork.core.graph import Node
from ork.core.limits import Lane, Room
from ork.model.ids import TaskKey

_Place: TypeAlias = tuple[int, int, TaskKey]


class ReadyTasks:
    def __init__(self) -> None:
        self._lanes: dict[Lane, list[_Place]] = {}  # none that is empty
        self._keys: set[TaskKey] = set()  # a task that stood in line twice would be started again before its time

    def push(self, key: TaskKey, node: Node) -> None:
        if key in self._keys:
            return
        self._keys.add(key)
        heappush(self._lanes.setdefault(node.lane, []), (-node.spec.priority, node.ordinal, key))

    def pop_open(self, room: Room, least: int | None = None) -> Iterator[TaskKey]:
        """The most urgent first, of those for which there is room, of which those before them may take; none of a lower
        priority than `least`, if that is given. Each leaves its lane as it is given out, and none may be pushed meanwhile:
        the lanes are compared once, not for every task."""
        heads = [(heap[0], lane) for lane, heap in self._lanes.items() if room.is_there_for(lane)]
        heapify(heads)
        while heads:
            (urgency, _, key), lane = heads[0]
            if least is not None and -urgency < least:
                return
            if not room.is_there_for(lane):
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

    def urgency(self, room: Room) -> int | None:
        """The highest priority for which there is room; None if there is none."""
        return max((-heap[0][0] for lane, heap in self._lanes.items() if room.is_there_for(lane)), default=None)

    def has_any(self, room: Room) -> bool:
        return any(map(room.is_there_for, self._lanes))

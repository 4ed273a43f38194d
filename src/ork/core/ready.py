"""Tasks that may start, most urgent first, in lanes: a crowd waiting for a full pool is in nobody's way."""

from __future__ import annotations

from collections.abc import Collection
from heapq import heappop, heappush

from ork.core.graph import Node
from ork.core.limits import Lane, lane_of
from ork.model.ids import TaskKey


class ReadyTasks:
    def __init__(self, workflow: str) -> None:
        self._workflow = workflow
        self._lanes: dict[Lane, list[tuple[int, int, TaskKey]]] = {}
        self._keys: set[TaskKey] = set()  # a task that stood in line twice would be started again before its time

    def push(self, key: TaskKey, node: Node) -> None:
        if key in self._keys:
            return
        self._keys.add(key)
        lane = self._lanes.setdefault(lane_of(self._workflow, node.spec), [])
        heappush(lane, (-node.spec.priority, node.ordinal, key))

    def pop(self, full: Collection[str]) -> TaskKey | None:
        """The most urgent one that counts against no limit known to be full."""
        lanes = [heap for lane, heap in self._lanes.items() if heap and lane.isdisjoint(full)]
        if not lanes:
            return None
        key = heappop(min(lanes, key=lambda heap: heap[0]))[2]
        self._keys.discard(key)
        return key

    def has_any(self, full: Collection[str]) -> bool:
        return any(heap and lane.isdisjoint(full) for lane, heap in self._lanes.items())

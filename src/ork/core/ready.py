"""Tasks that may start, most urgent first, in lanes: a crowd waiting for a full pool is in nobody's way."""

from __future__ import annotations

from collections.abc import Collection
from heapq import heappop, heappush

from ork.core.graph import Node
from ork.core.limits import Lane, limits_of
from ork.model.ids import TaskKey


class ReadyTasks:
    def __init__(self) -> None:
        self._lanes: dict[Lane, list[tuple[int, int, TaskKey]]] = {}

    def push(self, key: TaskKey, node: Node) -> None:
        heappush(self._lanes.setdefault(limits_of(node.spec), []), (-node.spec.priority, node.ordinal, key))

    def pop(self, full: Collection[str]) -> TaskKey | None:
        """The most urgent one that counts against no limit known to be full."""
        lanes = [heap for lane, heap in self._lanes.items() if heap and lane.isdisjoint(full)]
        return heappop(min(lanes, key=lambda heap: heap[0]))[2] if lanes else None

    def has_any(self, full: Collection[str]) -> bool:
        return any(heap and lane.isdisjoint(full) for lane, heap in self._lanes.items())

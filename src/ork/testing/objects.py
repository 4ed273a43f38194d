"""One process's view of an object store, which lags and fails."""

from __future__ import annotations

import builtins

from ork.objects.keyed import KeyedDocuments
from ork.objects.memory import MemoryObjects
from ork.testing.faults import LONGEST_LAG, SimulatedProcess

__all__ = ["FlakyObjects", "MemoryObjects"]


class FlakyObjects(KeyedDocuments):
    """One process's view of a shared store: reads lag behind others' writes for a while, and any call may fail.

    Creating is never stale: `put_if_absent` has one winner whatever else goes wrong.
    """

    kind = "memory"
    answers_at_once = True

    def __init__(self, objects: MemoryObjects, process: SimulatedProcess) -> None:
        self.url = objects.url
        self._objects = objects
        self._process = process

    def put(self, key: str, data: bytes) -> None:
        self._begin(writes=True)
        self._objects.put(key, data, writer=self._process.name)
        self._end()

    def put_if_absent(self, key: str, data: bytes) -> bool:
        self._begin(writes=True)
        won = self._objects.put_if_absent(key, data, writer=self._process.name)
        self._end()
        return won

    def get(self, key: str, *, limit: int | None = None) -> bytes | None:
        self._begin(writes=False)
        faults = self._process.faults
        if not faults.happens(faults.rates.lag):
            return self._objects.get(key, limit=limit)
        seen = self._process.kernel.time - faults.random.uniform(0, LONGEST_LAG)
        return self._objects.get_as_of(key, seen, self._process.name, limit=limit)

    def read(self, key: str, start: int = 0, size: int | None = None) -> bytes:
        self._begin(writes=False)
        return self._objects.read(key, start, size)

    def size(self, key: str) -> int | None:
        self._begin(writes=False)
        return self._objects.size(key)

    def list(self, prefix: str) -> builtins.list[str]:
        self._begin(writes=False)
        return self._objects.list(prefix)

    def delete(self, prefix: str) -> None:
        self._begin(writes=True)
        self._objects.delete(prefix)

    def _begin(self, *, writes: bool) -> None:
        self._process.around_object_io()
        self._process.object_error(writes=writes)

    def _end(self) -> None:
        """The write is done; the caller may still get an error."""
        self._process.around_object_io()
        self._process.object_error(writes=False)

"""Object stores without a disk: one that is honest, and one that lags and fails."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import NamedTuple

from ork.errors import DocumentError, ObjectsError
from ork.testing.faults import LONGEST_LAG, Process


class _Written(NamedTuple):
    at: float
    writer: str
    data: bytes


class MemoryObjects:
    """Every promise of the contract, in one process. Remembers older contents, so that a reader can lag behind."""

    url = "memory:"

    def __init__(self, elapsed: Callable[[], float] = lambda: 0.0) -> None:
        self._elapsed = elapsed
        self._written: dict[str, list[_Written]] = {}

    def put(self, key: str, data: bytes, *, writer: str = "") -> None:
        self._written.setdefault(_checked(key), []).append(_Written(self._elapsed(), writer, bytes(data)))

    def put_if_absent(self, key: str, data: bytes, *, writer: str = "") -> bool:
        if _checked(key) in self._written:
            return False
        self.put(key, data, writer=writer)
        return True

    def get(self, key: str, *, limit: int | None = None) -> bytes | None:
        written = self._written.get(_checked(key))
        return _within(key, written[-1].data, limit) if written else None

    def get_as_of(self, key: str, moment: float, reader: str, *, limit: int | None = None) -> bytes | None:
        """What a reader sees whose view ends at `moment`, save for what it wrote itself."""
        for written in reversed(self._written.get(_checked(key), ())):
            if written.at <= moment or written.writer == reader:
                return _within(key, written.data, limit)
        return None

    def read(self, key: str, start: int = 0, size: int | None = None) -> bytes:
        data = self.get(key) or b""
        return data[start:] if size is None else data[start : start + size]

    def size(self, key: str) -> int | None:
        data = self.get(key)
        return None if data is None else len(data)

    def list(self, prefix: str) -> builtins.list[str]:
        return sorted(key for key in self._written if _is_below(key, prefix))

    def delete(self, prefix: str) -> None:
        for key in self.list(prefix):
            del self._written[key]

    def history(self, key: str) -> builtins.list[bytes]:
        """Every content the key has had, oldest first."""
        return [written.data for written in self._written.get(key, ())]

    def written_at(self, key: str, writer: str, *, exactly: bool = False) -> float | None:
        """When it was last written by somebody whose name is that, or begins like that."""
        times = [
            written.at
            for written in self._written.get(key, ())
            if (written.writer == writer if exactly else written.writer.startswith(writer))
        ]
        return times[-1] if times else None

    def forget_since(self, key: str, moment: float) -> None:
        """A machine lost power before its disk had what was written after `moment`."""
        kept = [written for written in self._written.get(key, ()) if written.at <= moment]
        if kept:
            self._written[key] = kept
        else:
            self._written.pop(key, None)


class FlakyObjects:
    """One process's view of a shared store: reads lag behind others' writes for a while, and any call may fail.

    Creating is never stale: `put_if_absent` has one winner whatever else goes wrong.
    """

    def __init__(self, objects: MemoryObjects, process: Process) -> None:
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
        """The write is done; the answer may still get lost."""
        self._process.around_object_io()
        self._process.object_error(writes=False)


def _checked(key: str) -> str:
    if not key or "\0" in key or any(part in ("", ".", "..") for part in key.split("/")):
        raise ObjectsError(f"not a key: {key!r}")
    return key


def _within(key: str, data: bytes, limit: int | None) -> bytes:
    if limit is not None and len(data) > limit:
        raise DocumentError(f"{key} has {len(data)} bytes; at most {limit} are allowed")
    return data


def _is_below(key: str, prefix: str) -> bool:
    return not prefix or key == prefix or key.startswith(prefix if prefix.endswith("/") else prefix + "/")

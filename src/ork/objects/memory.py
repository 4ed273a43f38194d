"""Objects in the memory of one process, for simulations, benchmarks and tests."""

from __future__ import annotations

import builtins
from _thread import allocate_lock
from collections.abc import Callable
from typing import NamedTuple

from ork.errors import DocumentError
from ork.objects import layout
from ork.objects.keyed import KeyedDocuments


class _Written(NamedTuple):
    at: float
    writer: str
    data: bytes


class MemoryObjects(KeyedDocuments):
    """Fulfils the whole contract. Remembers when and by whom objects were written, so that a simulation can show older
    contents to a reader, and lose the latest writes."""

    url = "memory:"
    kind = "memory"
    answers_at_once = True

    def __init__(self, elapsed: Callable[[], float] = lambda: 0.0) -> None:
        self._elapsed = elapsed
        self._written: dict[str, list[_Written]] = {}
        self._lock = allocate_lock()

    def put(self, key: str, data: bytes, *, writer: str = "") -> None:
        self._written.setdefault(layout.checked_key(key), []).append(_Written(self._elapsed(), writer, bytes(data)))

    def put_if_absent(self, key: str, data: bytes, *, writer: str = "") -> bool:
        with self._lock:
            if layout.checked_key(key) in self._written:
                return False
            self.put(key, data, writer=writer)
        return True

    def get(self, key: str, *, limit: int | None = None) -> bytes | None:
        written = self._written.get(layout.checked_key(key))
        return _within(key, written[-1].data, limit) if written else None

    def get_as_of(self, key: str, moment: float, reader: str, *, limit: int | None = None) -> bytes | None:
        """The object as of `moment`, for a reader that also sees its own later writes."""
        for written in reversed(self._written.get(layout.checked_key(key), ())):
            if written.at <= moment or written.writer == reader:
                return _within(key, written.data, limit)
        return None

    def read(self, key: str, start: int = 0, size: int | None = None) -> bytes:
        data = self.get(key) or b""
        return data[start : None if size is None else start + size]

    def size(self, key: str) -> int | None:
        data = self.get(key)
        return None if data is None else len(data)

    def list(self, prefix: str) -> builtins.list[str]:
        inner = prefix.strip("/")
        return sorted(key for key in self._written if not inner or key == inner or key.startswith(inner + "/"))

    def delete(self, prefix: str) -> None:
        for key in self.list(layout.checked_key(prefix)):
            del self._written[key]

    # ── for simulations ──────────────────────────────────────────────────────────────────────────

    def statuses_of(self, attempt: str) -> builtins.list[bytes]:
        """Every status the attempt has had, oldest first."""
        return [written.data for written in self._written.get(layout.status_key(layout.stem(attempt)), ())]

    def last_written_at(self, attempt: str, by: Callable[[str], bool]) -> float | None:
        """When a writer that fulfils the predicate last wrote the attempt's gate or status."""
        stem = layout.stem(attempt)
        kept = [*self._written.get(layout.gate_key(stem), ()), *self._written.get(layout.status_key(stem), ())]
        return max((written.at for written in kept if by(written.writer)), default=None)

    def lose_since(self, attempt: str, moment: float) -> None:
        """The attempt's machine lost power before its disk had what was written after `moment`."""
        stem = layout.stem(attempt)
        for key in (layout.gate_key(stem), layout.status_key(stem), layout.output_key(stem)):
            self.forget_since(key, moment)

    def forget_since(self, key: str, moment: float) -> None:
        """As if the object had not been written after `moment`."""
        kept = [written for written in self._written.get(key, ()) if written.at <= moment]
        if kept:
            self._written[key] = kept
        else:
            self._written.pop(key, None)


def _within(key: str, data: bytes, limit: int | None) -> bytes:
    if limit is not None and len(data) > limit:
        raise DocumentError(f"{key} has {len(data)} bytes, more than the {limit} allowed")
    return data

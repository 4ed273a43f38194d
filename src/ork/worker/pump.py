"""Passes a program's standard output on to the log, byte for byte, and remembers its last line."""

from __future__ import annotations

import os

_CHUNK = 1 << 16
_MOST_CHUNKS = 64  # more than any pipe holds, yet few enough that signals and heartbeats are looked after


class Pump:
    """Memory is bounded by `line_limit`, however long the lines are."""

    def __init__(self, source: int, log: int, line_limit: int) -> None:
        self.source = source
        self._log = log
        self._last = LastLine(line_limit)
        self._lost = 0
        os.set_blocking(source, False)

    def empty(self) -> bool:
        """Moves what is there; False when no more can come."""
        for _ in range(_MOST_CHUNKS):
            try:
                chunk = os.read(self.source, _CHUNK)
            except BlockingIOError:
                return True
            if not chunk:
                return False
            self._last.feed(chunk)
            self._write(chunk)
        return True

    def last_line(self) -> bytes | None:
        return self._last.line()

    def _write(self, chunk: bytes) -> None:
        try:
            if self._lost:
                os.write(self._log, f"\n[ork: {self._lost} bytes of output were lost here: disk full]\n".encode())
                self._lost = 0
            rest = memoryview(chunk)
            while rest:
                rest = rest[os.write(self._log, rest) :]
        except OSError:
            # The task is worth more than its log: drop, note how much, go on.
            self._lost += len(chunk)


class LastLine:
    """The last line that is not blank, unless it is longer than the limit."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._done: bytes | None = None
        self._open = bytearray()
        self._is_too_long = False

    def feed(self, chunk: bytes) -> None:
        *whole, rest = chunk.split(b"\n")
        for piece in whole:
            self._append(piece)
            self._close()
        self._append(rest)

    def line(self) -> bytes | None:
        self._close()
        return self._done

    def _append(self, piece: bytes) -> None:
        if self._is_too_long or len(self._open) + len(piece) > self._limit:
            self._is_too_long = True
            self._open.clear()
        else:
            self._open += piece

    def _close(self) -> None:
        if self._is_too_long:
            self._done = None
        elif self._open.strip():
            self._done = bytes(self._open)
        self._open.clear()
        self._is_too_long = False

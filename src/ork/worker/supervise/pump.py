"""Passes on what a process writes to its standard streams to the log, byte for byte, and remembers the last line."""

from __future__ import annotations

import os
import time
from fcntl import ioctl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ork.model.masking import Mask, MaskedStream
    from ork.worker.supervise.log import Log

HELD_BYTES = 1 << 16
QUIET_SECONDS = 0.5
HELD_SECONDS = 3.0
# A line that is no longer needs no reason to be remembered; a longer one must look like JSON.
SMALL_LINE = 1 << 16
_CHUNK = 1 << 16
_FIONREAD, _NOTHING = 0x541B, bytes(4)  # how much there is to be read
_BRACKETS = {b"{": b"}", b"[": b"]", b'"': b'"'}


def has_words(source: int) -> bool:
    """Whether there is something to be read."""
    return ioctl(source, _FIONREAD, _NOTHING) != _NOTHING


class Stream:
    """A pipe whose bytes go to the log.

    Where another stream goes to the same log, `keeps_lines`: an unfinished line is held back for a moment, so that
    nothing of the other one comes into its middle. Memory is bounded however long the lines are.
    """

    def __init__(self, source: int, log: Log, *, last: LastLine | None = None, keeps_lines: bool = False) -> None:
        self.source = source
        self.due: float | None = None  # when what is held back must be passed on, finished or not
        self._log = log
        self._last = last
        self._keeps_lines = keeps_lines
        self._held = bytearray()
        self._held_since = 0.0
        self._masked = None if log.mask is None else _masked_stream(log.mask)
        os.set_blocking(source, False)

    def empty(self) -> bool:
        """Moves some of what is there, so that streams take turns; False when no more can come."""
        try:
            chunk = os.read(self.source, _CHUNK)
        except BlockingIOError:
            return True
        if not chunk:
            self.close()
            return False
        if self._last is not None:
            self._last.feed(chunk)
        if self._keeps_lines:
            self._pass_on_lines(chunk)
        else:
            self._write(chunk)
        return True

    def release(self) -> None:
        """Passes on what was held back."""
        if self._held:
            self._write(bytes(self._held))
            self._held.clear()
        self.due = None

    def close(self) -> None:
        """Nothing more comes."""
        self.release()
        if self._masked is not None and (rest := self._masked.flush()):
            self._log.write(rest)

    def _write(self, data: bytes) -> None:
        """A value of a secret is masked also where it comes in pieces."""
        if self._masked is not None:
            data = self._masked.feed(data)
        if data:
            self._log.write(data)

    def _pass_on_lines(self, chunk: bytes) -> None:
        now = time.monotonic()
        end = chunk.rfind(b"\n") + 1
        if end or not self._held:
            self._held_since = now
        self._held += chunk[:end]
        if end:
            self.release()
        self._held += chunk[end:]
        if len(self._held) >= HELD_BYTES:
            self.release()
        elif self._held:
            self.due = min(now + QUIET_SECONDS, self._held_since + HELD_SECONDS)


def _masked_stream(mask: Mask) -> MaskedStream:
    from ork.model.masking import MaskedStream

    return MaskedStream(mask)


class LastLine:
    """The last line that is not blank, unless it is longer than the limit."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.is_too_large = False  # the last line looked like JSON, but was more than could be kept
        self._done: bytes | None = None
        self._open = bytearray()
        self._is_dropped = False
        self._first = self._end = b""  # of a dropped line: its first and last character that is not blank

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
        if not self._is_dropped:
            self._open += piece
            if not self._is_worth_keeping():
                self._is_dropped = True
                stripped = self._open.strip()
                self._first, self._end = bytes(stripped[:1]), bytes(stripped[-1:])
                self._open.clear()
        elif stripped_piece := piece.strip():
            self._first = self._first or stripped_piece[:1]
            self._end = stripped_piece[-1:]

    def _is_worth_keeping(self) -> bool:
        if len(self._open) <= min(self.limit, SMALL_LINE):
            return True
        return len(self._open) <= self.limit and bytes(self._open[:SMALL_LINE].lstrip()[:1]) in _BRACKETS

    def _close(self) -> None:
        if self._is_dropped and self._first:
            self._done = None
            self.is_too_large = _BRACKETS.get(self._first) == self._end
        elif self._open.strip():
            self._done = bytes(self._open)
            self.is_too_large = False
        self._open.clear()
        self._is_dropped = False
        self._first = self._end = b""

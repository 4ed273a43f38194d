"""The attempt's log: copies the task's pipes into it, keeps their last line, and buffers while the disk is full."""

from __future__ import annotations

import errno
import os
import time
from fcntl import ioctl

from ork.errors import ObjectsError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ork.model.masking import Mask, MaskedStream
    from ork.objects.attempt_documents import LogSink

KEPT_BYTES = 1 << 20
TRY_AGAIN_SECONDS = 0.5
_CHUNK = 1 << 16
_LAST_TRIES_SECONDS = 5.0
_FULL = (errno.ENOSPC, errno.EDQUOT)
HELD_BYTES = 1 << 16
QUIET_SECONDS = 0.5
HELD_SECONDS = 3.0
# A line up to this length is always kept as the last line; a longer one only if it looks like JSON.
SMALL_LINE = 1 << 16
_FIONREAD, _NOTHING = 0x541B, bytes(4)  # number of readable bytes
_BRACKETS = {b"{": b"}", b"[": b"]", b'"': b'"'}


class Log:
    """Writes never fail: the task is worth more than its log.

    Data that cannot be written is buffered up to a limit; beyond it, the log contains the number of lost bytes instead. The
    file is created with its first byte.
    """

    def __init__(self, sink: LogSink, echo: int | None = None, mask: Mask | None = None) -> None:
        self._sink = sink
        self.mask = mask  # of the task's secrets, for all writers of this log
        self._echo = echo  # a descriptor that gets a copy of everything
        self.descriptor = -1
        self._waiting = bytearray()
        self._lost = 0
        self._why = ""
        self._is_at_line_start = True
        self._streams: list[Stream] = []

    def opened(self) -> int:
        """A descriptor of the log for a process that writes to it directly; the null device if the log cannot be opened."""
        try:
            self._open()
        except OSError as error:
            self._why = _reason(error)
            return os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        return self.descriptor

    def attach(self, stream: Stream) -> Stream:
        """Register a stream, so that its unfinished lines are not held back for long."""
        self._streams.append(stream)
        return stream

    def write(self, data: bytes) -> None:
        if self._echo is not None:
            self._write_echo(self._echo, data)
        if self._lost:
            self._lost += len(data)
        else:
            room = KEPT_BYTES - len(self._waiting)
            if room < len(data):
                self.flush()
                room = KEPT_BYTES - len(self._waiting)
            self._waiting += data[:room]
            self._lost = max(0, len(data) - room)
        self.flush()

    def note(self, text: str) -> None:
        """Write a line of Ork itself, marked by brackets."""
        start = "" if self._is_at_line_start else "\n"
        self.write(f"{start}[ork: {text}]\n".encode())

    def flush(self) -> bool:
        """Write the buffered data as far as possible. True if the buffer is empty."""
        try:
            while self._waiting or self._lost:
                self._open()
                if not self._waiting:
                    self._waiting += self._note()
                    self._lost = 0
                written = os.write(self.descriptor, self._waiting[:_CHUNK])
                self._is_at_line_start = self._waiting[written - 1] == 0x0A
                del self._waiting[:written]
        except OSError as error:
            self._why = _reason(error)
            return False
        return True

    def flush_at_last(self, is_asked_to_end: Callable[[], bool]) -> None:
        """Write the buffer for the last time, after the result was written."""
        give_up_at = time.monotonic() + _LAST_TRIES_SECONDS
        while not self.flush() and time.monotonic() < give_up_at and not is_asked_to_end():
            time.sleep(0.1)

    def due(self, now: float) -> float | None:
        """When `flush` or a release of held-back lines is due."""
        moments = [stream.due for stream in self._streams if stream.due is not None]
        if self._waiting or self._lost:
            moments.append(now + TRY_AGAIN_SECONDS)
        if self.descriptor >= 0 and (upload_at := self._sink.due(now)) is not None:
            moments.append(upload_at)
        return min(moments, default=None)

    def tend(self, now: float) -> None:
        for stream in self._streams:
            if stream.due is not None and now >= stream.due:
                stream.release()
        if self._waiting or self._lost:
            self.flush()
        if self.descriptor >= 0 and (upload_at := self._sink.due(now)) is not None and now >= upload_at:
            self.upload()

    def upload(self) -> bool:
        """Upload a part of the log, if the store has no file for it. True if more waits. A failed upload is tried again later."""
        try:
            return self._sink.flush()
        except ObjectsError:
            return False

    def let_go(self) -> None:
        """Unregister all streams, because they have ended."""
        for stream in self._streams:
            stream.close()
        self._streams.clear()

    def close(self) -> None:
        if self.descriptor >= 0:
            self._sink.close()
            self.descriptor = -1

    def unwritten(self) -> bytes:
        return bytes(self._waiting)

    def _write_echo(self, echo: int, data: bytes) -> None:
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(echo, rest) :]
        except OSError:
            self._echo = None  # its reader is gone

    def _note(self) -> bytes:
        start = "" if self._is_at_line_start else "\n"
        return f"{start}[ork: {self._lost} bytes of log lost: {self._why}]\n".encode()

    def _open(self) -> None:
        """Open the log file. An error is handled like a full disk: the task continues, and opening is tried again."""
        if self.descriptor < 0:
            self.descriptor = self._sink.fileno()


def _reason(error: OSError) -> str:
    return "the disk was full" if error.errno in _FULL else str(error.strerror)


def has_words(source: int) -> bool:
    """Whether the pipe has data."""
    return ioctl(source, _FIONREAD, _NOTHING) != _NOTHING


class Stream:
    """A pipe whose bytes go to the log.

    `keeps_lines`: an unfinished line is held back for a moment, so that another stream of the same log does not
    interrupt it. Memory is bounded however long the lines are.
    """

    def __init__(self, source: int, log: Log, *, last: LastLine | None = None, keeps_lines: bool = False) -> None:
        self.source = source
        self.due: float | None = None  # when a held-back line must be written, finished or not
        self._log = log
        self._last = last
        self._keeps_lines = keeps_lines
        self._held = bytearray()
        self._held_since = 0.0
        self._masked = None if log.mask is None else _masked_stream(log.mask)
        os.set_blocking(source, False)

    def empty(self) -> bool:
        """Copy some data, so that streams take turns. False at the end of the stream."""
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
        """Write the held-back line."""
        if self._held:
            self._write(bytes(self._held))
            self._held.clear()
        self.due = None

    def close(self) -> None:
        """Write the rest and close the pipe."""
        self.release()
        if self._masked is not None and (rest := self._masked.flush()):
            self._log.write(rest)

    def _write(self, data: bytes) -> None:
        """Write data with secrets masked, also if a value arrives in pieces."""
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
        self.is_too_large = False  # the last line looked like JSON, but was too long to keep
        self._done: bytes | None = None
        self._open = bytearray()
        self._is_dropped = False
        self._first = self._end = b""  # of a dropped line: its first and last non-blank character

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

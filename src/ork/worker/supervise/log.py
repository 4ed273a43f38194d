"""The attempt's log: pipes of the task whose bytes go there, their last line, and what is kept while the disk is full."""

from __future__ import annotations

import errno
import os
import time
from fcntl import ioctl

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
# A line that is no longer needs no reason to be remembered; a longer one must look like JSON.
SMALL_LINE = 1 << 16
_FIONREAD, _NOTHING = 0x541B, bytes(4)  # how much there is to be read
_BRACKETS = {b"{": b"}", b"[": b"]", b'"': b'"'}


class Log:
    """Takes everything and never fails: the task is worth more than its log.

    What cannot be written waits, up to a bound; what is more than that is counted, and the count stands in its place.
    It is opened, and made, with its first byte.
    """

    def __init__(self, sink: LogSink, echo: int | None = None, mask: Mask | None = None) -> None:
        self._sink = sink
        self.mask = mask  # of the secrets that the task has, for whatever writes to this log
        self._echo = echo  # a descriptor that hears everything as well
        self.descriptor = -1
        self._waiting = bytearray()
        self._lost = 0
        self._why = ""
        self._is_at_line_start = True
        self._streams: list[Stream] = []

    def opened(self) -> int:
        """Its descriptor, for a process that writes to it by itself; of the null device where it cannot be opened."""
        try:
            self._open()
        except OSError as error:
            self._why = _reason(error)
            return os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        return self.descriptor

    def attach(self, stream: Stream) -> Stream:
        """From now on looked after: its unfinished lines are not held back for long."""
        self._streams.append(stream)
        return stream

    def write(self, data: bytes) -> None:
        if self._echo is not None:
            self._tell(self._echo, data)
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
        """A line of Ork's own, told from those of the task by its brackets."""
        start = "" if self._is_at_line_start else "\n"
        self.write(f"{start}[ork: {text}]\n".encode())

    def flush(self) -> bool:
        """Writes what waits, as far as there is room; True if nothing waits any more."""
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

    def flush_at_last(self, is_told_to_go: Callable[[], bool]) -> None:
        """The attempt is over and its result written: so there is room, or there will be none for us."""
        give_up_at = time.monotonic() + _LAST_TRIES_SECONDS
        while not self.flush() and time.monotonic() < give_up_at and not is_told_to_go():
            time.sleep(0.1)

    def due(self, now: float) -> float | None:
        """When it must be tended at the latest."""
        moments = [stream.due for stream in self._streams if stream.due is not None]
        if self._waiting or self._lost:
            moments.append(now + TRY_AGAIN_SECONDS)
        return min(moments, default=None)

    def tend(self, now: float) -> None:
        for stream in self._streams:
            if stream.due is not None and now >= stream.due:
                stream.release()
        if self._waiting or self._lost:
            self.flush()

    def let_go(self) -> None:
        """Nothing more comes from the streams there are."""
        for stream in self._streams:
            stream.close()
        self._streams.clear()

    def close(self) -> None:
        if self.descriptor >= 0:
            self._sink.close()
            self.descriptor = -1

    def unwritten(self) -> bytes:
        return bytes(self._waiting)

    def _tell(self, echo: int, data: bytes) -> None:
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(echo, rest) :]
        except OSError:
            self._echo = None  # nobody listens any more

    def _note(self) -> bytes:
        start = "" if self._is_at_line_start else "\n"
        return f"{start}[ork: {self._lost} bytes of log lost: {self._why}]\n".encode()

    def _open(self) -> None:
        """Where it cannot be opened it is as if the disk were full: the task goes on, and it is tried again."""
        if self.descriptor < 0:
            self.descriptor = self._sink.fileno()


def _reason(error: OSError) -> str:
    return "the disk was full" if error.errno in _FULL else str(error.strerror)


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

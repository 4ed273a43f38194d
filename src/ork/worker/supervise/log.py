"""The attempt's log: what the task says, and what is kept of it while the disk is full."""

from __future__ import annotations

import errno
import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ork.model.masking import Mask
    from ork.objects.attempt_documents import LogSink
    from ork.worker.supervise.pump import Stream

KEPT_BYTES = 1 << 20
TRY_AGAIN_SECONDS = 0.5
_CHUNK = 1 << 16
_LAST_TRIES_SECONDS = 5.0
_FULL = (errno.ENOSPC, errno.EDQUOT)


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

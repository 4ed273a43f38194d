"""The executor's end of a pooled worker's socket: it sends requests and receives messages."""

from __future__ import annotations

import asyncio
import socket
import time
from collections import deque
from collections.abc import Collection
from typing import Protocol

from ork.executors.fork_server import ForkServer

LARGEST_REQUEST = 1 << 16
MAX_AHEAD = 256
ENDS = (
    b"over",
    b"swift",
    b"light",
)  # messages: `swift` for a task that never waited, `light` for one that also cost little
_MAX_WEIGHT = 18 << 14  # in bytes, of requests that are queued at a worker
_SOCKET_BUFFER_BYTES = (
    1 << 18
)  # requested; most systems grant enough for most of the queued requests, also for small ones

# Interpreter, isolation, preloaded server, and what the worker keeps beside it, if any: a worker is used for only one of each.
Kind = tuple[str, str, ForkServer | None, str]


class Owner(Protocol):
    def on_message(self, worker: WorkerHandle, message: bytes) -> None: ...

    def on_messages_read(self, worker: WorkerHandle) -> None:
        """All available messages have been processed."""
        ...

    def on_closed(self, worker: WorkerHandle) -> None:
        """The worker will send no more messages."""
        ...


def make_socket_pair() -> tuple[socket.socket, socket.socket]:
    """The executor's end and the worker's end."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SOCKET_BUFFER_BYTES)
    return ours, theirs


class WorkerHandle:
    """A pooled worker. It runs the first of its requests, or several if tasks share a process; the rest is queued there."""

    __slots__ = (
        "_late",
        "_owner",
        "_socket",
        "_unsent",
        "_unsent_bytes",
        "begun_at",
        "fingerprint",
        "given",
        "has_reported",
        "has_taken",
        "is_reclaiming",
        "is_slow",
        "kind",
        "pace",
        "server",
        "weight",
    )

    def __init__(
        self, owner: Owner, kind: Kind, server: ForkServer, control: socket.socket, fingerprint: object
    ) -> None:
        self.kind = kind
        self.server = server
        self.fingerprint = fingerprint
        self.given: dict[str, bytes] = {}  # requests by attempt
        self.weight = 0  # of all requests, in bytes
        self.begun_at = 0.0  # when it could begin with the first request
        self.pace = 0.0  # seconds per task, for the ends that it reported last
        self.has_taken = False  # it has sent a message since then
        self.is_slow = False  # its current task takes long
        self.is_reclaiming = False  # it was asked to return the requests that it has not begun, and has not answered
        self.has_reported = False
        self._owner = owner
        self._socket = control
        self._unsent: list[bytes] = []
        self._unsent_bytes = 0
        self._late: deque[bytes] = deque()  # messages that could not be sent yet
        asyncio.get_running_loop().add_reader(control, self._receive)

    @property
    def attempt(self) -> str | None:
        return next(iter(self.given), None)

    @property
    def is_quick(self) -> bool:
        return not (self.is_slow or self.is_reclaiming)

    @property
    def has_capacity(self) -> bool:
        return len(self.given) < MAX_AHEAD and self.weight < _MAX_WEIGHT and not self._late

    def give(self, attempt: str, request: bytes) -> None:
        self.given[attempt] = request
        self.weight += len(request)
        if len(self.given) == 1:
            self._begin()
        if self._unsent_bytes + len(request) > LARGEST_REQUEST:
            self.flush()
        self._unsent.append(request)
        self._unsent_bytes += len(request)

    def flush(self) -> None:
        unsent, self._unsent, self._unsent_bytes = self._unsent, [], 0
        if unsent:
            self.send(b"".join(unsent))

    def done_with(self, attempt: str) -> None:
        self.weight -= len(self.given.pop(attempt))
        self._begin()

    def reclaim(self, begun: Collection[str]) -> dict[str, bytes]:
        """Remove and return all requests but those begun."""
        attempts = [attempt for attempt in self.given if attempt not in begun]
        taken = {attempt: self.given.pop(attempt) for attempt in attempts}
        self.weight -= sum(map(len, taken.values()))
        return taken

    def _begin(self) -> None:
        self.begun_at, self.has_taken, self.is_slow = time.monotonic(), False, False

    def send(self, message: bytes) -> None:
        self._late.append(message)
        if len(self._late) == 1:
            self._send_late()

    def _send_late(self) -> None:
        """Send as many messages as possible; the rest follows when the socket is writable."""
        loop = asyncio.get_running_loop()
        try:
            while self._late:
                self._socket.send(self._late[0])
                self._late.popleft()
            loop.remove_writer(self._socket)
        except BlockingIOError:
            loop.add_writer(self._socket, self._send_late)
        except OSError:
            # Not within `ask`: the caller has not recorded the request yet.
            loop.call_soon(self.end)

    def detach(self) -> None:
        """Close the socket. The worker finishes its requests and exits, without further reports."""
        if self._socket.fileno() >= 0:
            loop = asyncio.get_running_loop()
            loop.remove_reader(self._socket)
            loop.remove_writer(self._socket)
            self._socket.close()

    def end(self) -> None:
        if self._socket.fileno() >= 0:
            self.detach()
            self._owner.on_closed(self)

    def _receive(self) -> None:
        messages: list[bytes] = []
        is_open = False
        try:
            while data := self._socket.recv(LARGEST_REQUEST):
                messages += data.split(b"\n")
        except BlockingIOError:
            is_open = True
        except OSError:
            pass
        ends = sum(message.startswith(ENDS) for message in messages)
        now = time.monotonic()
        if not self.has_reported:
            self.begun_at = now  # the time before was its start
        self.pace = (now - self.begun_at) / max(1, ends)
        try:
            for message in messages:
                self._owner.on_message(self, message)
        finally:
            self._owner.on_messages_read(self)
        if not is_open:
            self.end()

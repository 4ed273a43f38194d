"""Connections: how many there may be, which one is closed to make room, and how long each may take.

The scheduler of this process needs descriptors, too, so their number is limited. When the limit is reached, the oldest
connection without a request is closed, of the address that holds most of them: a client that sends its request gets its
answer, however many others send nothing. When all of them are busy, a few more are taken that may only ask for health.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter
from typing import Any, Protocol

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from ork.api.tls import Handshake

# How long the head of a request may take, and a body that makes no progress.
REQUEST_SECONDS = 30.0
SLOWEST_BYTES_PER_SECOND = 1024
# How long a whole body may take, and how long a client may leave its answer unread.
BODY_SECONDS = 300.0
UNREAD_SECONDS = 60.0
MOST_CONNECTIONS = 400
RESERVED_FOR_PROBES = 16
IS_FULL = "ork.is_full"


class Member(Protocol):
    """A connection, before TLS is agreed on or after."""

    transport: asyncio.Transport

    @property
    def address(self) -> str: ...

    def take_only_probes(self) -> None: ...


class ConnectionPool:
    """The connections of one server. Those that wait for a request are in the order in which they began to."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self._open: set[Member] = set()
        self._waiting: dict[Member, None] = {}

    def accepted(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> Connection | Handshake:
        """What uvicorn calls for each connection that it accepts."""

        def connection() -> Connection:
            return Connection(self, config, server_state, app_state, _loop)

        return connection() if self._tls is None else Handshake(self, self._tls, connection)

    def close(self) -> None:
        """Nobody has to wait for clients that do not agree on TLS."""
        for connection in list(self._waiting):
            if isinstance(connection, Handshake):
                self._drop(connection)

    def add(self, connection: Member) -> None:
        self._open.add(connection)
        if len(self._open) > MOST_CONNECTIONS:
            self._make_room()
        if len(self._open) > MOST_CONNECTIONS:
            connection.take_only_probes()
        if len(self._open) > MOST_CONNECTIONS + RESERVED_FOR_PROBES:
            self._drop(connection)
        else:
            self._waiting[connection] = None

    def remove(self, connection: Member) -> None:
        self._open.discard(connection)
        self._waiting.pop(connection, None)

    def began_request(self, connection: Connection) -> None:
        self._waiting.pop(connection, None)

    def answered(self, connection: Connection) -> None:
        if connection in self._open:
            self._waiting.pop(connection, None)
            self._waiting[connection] = None

    def _make_room(self) -> None:
        numbers = Counter(connection.address for connection in self._waiting)
        if numbers:
            greediest = numbers.most_common(1)[0][0]
            self._drop(next(each for each in self._waiting if each.address == greediest))

    def _drop(self, connection: Member) -> None:
        self.remove(connection)
        if self._tls is not None or connection.transport.get_write_buffer_size():
            connection.transport.abort()  # closing would wait for the client to read, and over TLS to say goodbye
        else:
            connection.transport.close()  # what it was answered last is not lost


class Connection(H11Protocol):
    """From its first moment, and from the first byte of each further request, a client has a time limit until its
    request is here; a body that comes along steadily gets more."""

    _begun: float = 0.0
    _taken: int = 0
    _deadline: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None

    def __init__(
        self,
        pool: ConnectionPool,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._pool = pool

    @property
    def address(self) -> str:
        return self.client[0] if self.client else ""

    def take_only_probes(self) -> None:
        """The guard finds it in the scope of each request."""
        self.app_state = {**self.app_state, IS_FULL: True}

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._begin()
        self._pool.add(self)

    def data_received(self, data: bytes) -> None:
        if self._deadline is None:
            self._begin()
        self._taken += len(data)
        super().data_received(data)
        if self._is_answering:
            self._pool.began_request(self)
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._end()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self._is_answering:  # there may have been another request behind it
            self._pool.answered(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._pool.remove(self)
        self._end()
        self._stop_waiting_for_reader()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread = self.loop.call_later(UNREAD_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        self._stop_waiting_for_reader()
        super().resume_writing()

    @property
    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _begin(self) -> None:
        self._begun, self._taken = self.loop.time(), 0
        self._deadline = self.loop.call_later(REQUEST_SECONDS, self._judge)

    def _end(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _stop_waiting_for_reader(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _judge(self) -> None:
        elapsed = self.loop.time() - self._begun
        is_steady = self._taken > elapsed * SLOWEST_BYTES_PER_SECOND and elapsed < BODY_SECONDS
        # A body that nobody wants any more, because the request was refused, is not waited for.
        if is_steady and self.conn.their_state is h11.SEND_BODY and self._is_answering:
            self._deadline = self.loop.call_later(REQUEST_SECONDS, self._judge)
        else:
            self._deadline = None
            self.transport.abort()

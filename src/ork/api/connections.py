"""Limits the number of connections and the duration of requests.

The scheduler in this process needs file descriptors too. When the limit is reached, the oldest connection without a
request is closed, of the address that has most of them: clients that send requests are not affected by idle ones. When
all connections are busy, a few more are accepted for health checks only.
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

# Maximum time for the head of a request, and for a body that makes no progress.
REQUEST_SECONDS = 30.0
SLOWEST_BYTES_PER_SECOND = 1024
# Maximum time for a whole body, and for a client that does not read its response.
BODY_SECONDS = 300.0
UNREAD_SECONDS = 60.0
MOST_CONNECTIONS = 400
RESERVED_FOR_PROBES = 16
IS_FULL = "ork.is_full"


class PooledConnection(Protocol):
    """A connection, before or after the TLS handshake."""

    transport: asyncio.Transport

    @property
    def address(self) -> str: ...

    def allow_only_probes(self) -> None: ...


class ConnectionPool:
    """The connections of one server. Those without a request are ordered by the start of their wait."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self._open: set[PooledConnection] = set()
        self._waiting: dict[PooledConnection, None] = {}

    def accepted(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> ClientConnection | Handshake:
        """Creates the protocol; uvicorn calls it for each accepted connection."""

        def connection() -> ClientConnection:
            return ClientConnection(self, config, server_state, app_state, _loop)

        return connection() if self._tls is None else Handshake(self, self._tls, connection)

    def close(self) -> None:
        """Closes connections that are still in the TLS handshake, so that shutdown does not wait for them."""
        for connection in list(self._waiting):
            if isinstance(connection, Handshake):
                self._drop(connection)

    def add(self, connection: PooledConnection) -> None:
        self._open.add(connection)
        if len(self._open) > MOST_CONNECTIONS:
            self._close_oldest_idle()
        if len(self._open) > MOST_CONNECTIONS:
            connection.allow_only_probes()
        if len(self._open) > MOST_CONNECTIONS + RESERVED_FOR_PROBES:
            self._drop(connection)
        else:
            self._waiting[connection] = None

    def remove(self, connection: PooledConnection) -> None:
        self._open.discard(connection)
        self._waiting.pop(connection, None)

    def request_started(self, connection: ClientConnection) -> None:
        self._waiting.pop(connection, None)

    def response_completed(self, connection: ClientConnection) -> None:
        if connection in self._open:
            self._waiting.pop(connection, None)
            self._waiting[connection] = None

    def _close_oldest_idle(self) -> None:
        numbers = Counter(connection.address for connection in self._waiting)
        if numbers:
            greediest = numbers.most_common(1)[0][0]
            self._drop(next(each for each in self._waiting if each.address == greediest))

    def _drop(self, connection: PooledConnection) -> None:
        self.remove(connection)
        if self._tls is not None or connection.transport.get_write_buffer_size():
            connection.transport.abort()  # close() would wait for the client to read, and for the TLS shutdown
        else:
            connection.transport.close()  # lets the last response arrive


class ClientConnection(H11Protocol):
    """A client has a time limit for sending each request; a body with steady progress gets more time."""

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

    def allow_only_probes(self) -> None:
        """Marks the scope of each request; the guard reads it."""
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
        if self._is_responding:
            self._pool.request_started(self)
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._end()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self._is_responding:  # a pipelined request may have started
            self._pool.response_completed(self)

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
    def _is_responding(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _begin(self) -> None:
        self._begun, self._taken = self.loop.time(), 0
        self._deadline = self.loop.call_later(REQUEST_SECONDS, self._check_deadline)

    def _end(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _stop_waiting_for_reader(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _check_deadline(self) -> None:
        elapsed = self.loop.time() - self._begun
        is_steady = self._taken > elapsed * SLOWEST_BYTES_PER_SECOND and elapsed < BODY_SECONDS
        # The body of a request that was already rejected is not waited for.
        if is_steady and self.conn.their_state is h11.SEND_BODY and self._is_responding:
            self._deadline = self.loop.call_later(REQUEST_SECONDS, self._check_deadline)
        else:
            self._deadline = None
            self.transport.abort()

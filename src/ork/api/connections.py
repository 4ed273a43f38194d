"""Connections that cost us something and bring nothing are closed: those that never get their request across, and
those that are too many. The scheduler of this process needs its descriptors, too."""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

# How long the head of a request may take, and a body that makes no progress.
REQUEST_SECONDS = 30.0
SLOWEST_BYTES_PER_SECOND = 1024
MOST_CONNECTIONS = 400


class Connection(H11Protocol):
    """From its first moment, and from the first byte of each further request, a client has a time limit until its
    request is here; a body that comes along steadily gets more."""

    _begun: float = 0.0
    _taken: int = 0
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            transport.abort()
        else:
            self._begin()

    def data_received(self, data: bytes) -> None:
        if self._deadline is None:
            self._begin()
        self._taken += len(data)
        super().data_received(data)
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._end()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()
        super().connection_lost(exc)

    def _begin(self) -> None:
        self._begun, self._taken = self.loop.time(), 0
        self._deadline = self.loop.call_later(REQUEST_SECONDS, self._judge)

    def _end(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _judge(self) -> None:
        elapsed = self.loop.time() - self._begun
        is_steady = self.conn.their_state is h11.SEND_BODY and self._taken > elapsed * SLOWEST_BYTES_PER_SECOND
        if is_steady:
            self._deadline = self.loop.call_later(REQUEST_SECONDS, self._judge)
        else:
            self._deadline = None
            self.transport.abort()

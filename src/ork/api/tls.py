"""Connections in the TLS handshake. They count, and may be closed, like connections without a request."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from uvicorn.protocols.utils import get_remote_addr

from ork.errors import UsageError

if TYPE_CHECKING:
    from ork.api.connections import ClientConnection, ConnectionPool

HANDSHAKE_SECONDS = 10.0


def tls_context(certificate: str, key: str) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certificate, key)
    except OSError as error:  # ssl.SSLError is one
        raise UsageError(f"the certificate cannot be used: {error}") from error
    return context


class Handshake(asyncio.Protocol):
    """Performs the TLS handshake, then hands over to a connection. Data received early is kept until then."""

    transport: asyncio.Transport
    address = ""

    def __init__(
        self,
        pool: ConnectionPool,
        context: ssl.SSLContext,
        make_connection: Callable[[], ClientConnection],
    ) -> None:
        self._pool = pool
        self._context = context
        self._make_connection = make_connection
        self._loop = asyncio.get_running_loop()
        self._early = bytearray()
        self._is_lost = False
        self._work: asyncio.Task[None] | None = None

    def allow_only_probes(self) -> None:
        """Does nothing: the connection that follows the handshake is counted again."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.pause_reading()
        peer = get_remote_addr(self.transport)
        self.address = peer[0] if peer else ""
        self._pool.add(self)
        self._work = self._loop.create_task(self._handshake())

    def data_received(self, data: bytes) -> None:
        self._early += data

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._is_lost = True
        self._pool.remove(self)

    async def _handshake(self) -> None:
        try:
            secured = await self._loop.start_tls(
                self.transport, self, self._context, server_side=True, ssl_handshake_timeout=HANDSHAKE_SECONDS
            )
        except (OSError, asyncio.CancelledError):  # no TLS, too slow, or gone
            secured = None
        self._pool.remove(self)
        if secured is None or self._is_lost:
            self.transport.abort()
            return
        connection = self._make_connection()
        secured.set_protocol(connection)
        connection.connection_made(secured)
        if self._early:
            connection.data_received(bytes(self._early))

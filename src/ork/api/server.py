"""Runs the API on a socket: checks its exposure, binds the address, and checks its health."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
import traceback
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import uvicorn
from starlette.types import ASGIApp

from ork.api.connections import ConnectionPool
from ork.api.guard import HEAD_LIMIT
from ork.api.origins import is_loopback
from ork.api.tls import tls_context
from ork.errors import RefusedError, StoreError, UsageError
from ork.model.access import Token
from ork.telemetry import Telemetry, TelemetryEvent

SHUTDOWN_SECONDS = 5
HEALTH_SECONDS = 10.0
DATE_SECONDS = 1.0
_SELF = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}


class ListenAddress(NamedTuple):
    """The address to listen on, the allowed host names, and the certificate."""

    host: str
    port: int
    allowed_hosts: Sequence[str] = ()
    tls_cert: str | None = None
    tls_key: str | None = None


def check_exposure(address: ListenAddress, tokens: Sequence[Token]) -> None:
    """RefusedError if the address is not loopback and no token or no allowed host name exists."""
    if is_loopback(address.host):
        return
    if not any(token.is_live(datetime.now(UTC)) for token in tokens):
        raise RefusedError(
            f"{address.host} can be reached from other machines, and there is no token", hint="ork token create"
        )
    if not address.allowed_hosts:
        raise RefusedError(
            f"{address.host} can be reached from other machines, and no host name is allowed",
            hint="name the server's host names: --allowed-host ork.example.com",
        )


def bind(address: ListenAddress) -> socket.socket:
    """Binds the socket; port 0 means any free one."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        listening = socket.create_server((address.host, address.port), family=family, backlog=256)
        # Inherited by connections. Without it the second packet of a response waits 40 ms for an acknowledgement.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listening
    except OSError as error:
        hint = "is another server running? choose another --port" if error.errno == 98 else None
        raise RefusedError(f"cannot listen on {address.host}:{address.port}: {error.strerror}", hint=hint) from error


class ApiServer:
    def __init__(self, app: ASGIApp, address: ListenAddress, telemetry: Telemetry) -> None:
        if (address.tls_cert is None) != (address.tls_key is None):
            raise UsageError("--tls-cert and --tls-key go together")
        self._socket = bind(address)
        self._host = address.host
        is_secure = address.tls_cert is not None and address.tls_key is not None
        self._is_secure = is_secure
        self._pool = ConnectionPool(tls_context(address.tls_cert or "", address.tls_key or "") if is_secure else None)
        config = uvicorn.Config(
            app,
            loop="asyncio",
            http=self._pool.accepted,  # type: ignore[arg-type]
            h11_max_incomplete_event_size=HEAD_LIMIT,
            ws="none",
            lifespan="off",
            access_log=False,
            log_config=None,
            server_header=False,
            proxy_headers=False,  # TrustedProxies handles them
            timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        )
        config.load()
        self._server = _Server(config)
        _forward_errors(logging.getLogger("uvicorn.error"), telemetry)

    @property
    def url(self) -> str:
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"{'https' if self._is_secure else 'http'}://{host}:{self._port}"

    @property
    def _port(self) -> int:
        port: int = self._socket.getsockname()[1]
        return port

    async def run(self) -> None:
        """Runs until `stop`. Open streams are ended by their own endpoints."""
        await self._server.serve(sockets=[self._socket])

    def stop(self) -> None:
        self._server.stop()
        self._pool.close()

    async def check_health(self) -> None:
        """Returns once the server has responded to a request of our own. The socket accepts it before the server runs.

        Without httpx2, whose import would delay the start of every server by a tenth of a second.
        """
        async with asyncio.timeout(HEALTH_SECONDS):
            context = _unverified_context() if self._is_secure else None
            reader, writer = await asyncio.open_connection(_SELF.get(self._host, self._host), self._port, ssl=context)
            writer.write(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            status = await reader.readline()
            writer.close()
        if b" 200 " not in status:
            raise StoreError(f"the server's health check failed: {status.decode('ascii', 'replace').strip()}")


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._stop_requested = asyncio.Event()

    def stop(self) -> None:
        self.should_exit = True
        self._stop_requested.set()

    async def main_loop(self) -> None:
        """Wakes once a second, for the date header; uvicorn's own loop wakes ten times a second."""
        while not await self.on_tick(0):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(DATE_SECONDS):
                    await self._stop_requested.wait()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Does nothing: the process handles signals, because the scheduler stops with the API."""
        yield


class _Errors(logging.Handler):
    """Turns uvicorn's error messages into telemetry events."""

    def __init__(self, telemetry: Telemetry) -> None:
        super().__init__(logging.ERROR)
        self._telemetry = telemetry

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        why = record.getMessage().strip() if error is None else f"{type(error).__name__}: {error}{_location_of(error)}"
        self._telemetry.emit(TelemetryEvent.API_FAILED, why=why)


def _location_of(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""


def _forward_errors(logger: logging.Logger, telemetry: Telemetry) -> None:
    """Replaces the logger's handlers. Only errors are forwarded, not warnings about invalid HTTP."""
    logger.propagate = False
    logger.handlers = [_Errors(telemetry)]


def _unverified_context() -> ssl.SSLContext:
    """A TLS context for requests to ourselves: the certificate is for another name than loopback."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context

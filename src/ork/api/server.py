"""The API on a socket: where it listens, whom it may listen to, and whether it really answers."""

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

GOODBYE_SECONDS = 5
HEALTH_SECONDS = 10.0
DATE_SECONDS = 1.0
_SELF = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}


class Place(NamedTuple):
    """Where to listen, under which names, and with which certificate."""

    host: str
    port: int
    allowed_hosts: Sequence[str] = ()
    tls_cert: str | None = None
    tls_key: str | None = None


def check_exposure(place: Place, tokens: Sequence[Token]) -> None:
    """What others can reach is not opened by accident: who may come in, and under which name, must have been said."""
    if is_loopback(place.host):
        return
    if not any(token.is_live(datetime.now(UTC)) for token in tokens):
        raise RefusedError(f"{place.host} can be reached by others, and there is no token", hint="ork token create")
    if not place.allowed_hosts:
        raise RefusedError(
            f"{place.host} can be reached by others, and no name is allowed",
            hint="name the hosts people will use: --allowed-host ork.example.com",
        )


def bind(place: Place) -> socket.socket:
    """Port 0 takes any that is free."""
    family = socket.AF_INET6 if ":" in place.host else socket.AF_INET
    try:
        listening = socket.create_server((place.host, place.port), family=family, backlog=256)
        # Connections inherit it. Without it the second packet of an answer waits 40 ms for the first to be acknowledged.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listening
    except OSError as error:
        hint = "is another server running? choose another --port" if error.errno == 98 else None
        raise RefusedError(f"cannot listen on {place.host}:{place.port}: {error.strerror}", hint=hint) from error


class ApiServer:
    def __init__(self, app: ASGIApp, place: Place, telemetry: Telemetry) -> None:
        if (place.tls_cert is None) != (place.tls_key is None):
            raise UsageError("--tls-cert and --tls-key go together")
        self._socket = bind(place)
        self._host = place.host
        is_secure = place.tls_cert is not None and place.tls_key is not None
        self._is_secure = is_secure
        self._pool = ConnectionPool(tls_context(place.tls_cert or "", place.tls_key or "") if is_secure else None)
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
            proxy_headers=False,  # what a client says about its own address is not believed
            timeout_graceful_shutdown=GOODBYE_SECONDS,
        )
        config.load()
        self._server = _Server(config)
        _listen_to(logging.getLogger("uvicorn.error"), telemetry)

    @property
    def url(self) -> str:
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"{'https' if self._is_secure else 'http'}://{host}:{self._port}"

    @property
    def _port(self) -> int:
        port: int = self._socket.getsockname()[1]
        return port

    async def run(self) -> None:
        """Until `stop`. Open streams are ended by whoever feeds them."""
        await self._server.serve(sockets=[self._socket])

    def stop(self) -> None:
        self._server.stop()
        self._pool.close()

    async def check_health(self) -> None:
        """Returns once our own request has been answered well; the socket takes it even before the server runs.

        Written out by hand: loading httpx2 for it would delay the start of every server by a tenth of a second.
        """
        async with asyncio.timeout(HEALTH_SECONDS):
            context = _trusting() if self._is_secure else None
            reader, writer = await asyncio.open_connection(_SELF.get(self._host, self._host), self._port, ssl=context)
            writer.write(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            status = await reader.readline()
            writer.close()
        if b" 200 " not in status:
            raise StoreError(f"the server does not answer well: {status.decode('ascii', 'replace').strip()}")


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._is_asked_to_stop = asyncio.Event()

    def stop(self) -> None:
        self.should_exit = True
        self._is_asked_to_stop.set()

    async def main_loop(self) -> None:
        """Wakes once a second, for the date in answers, where uvicorn's own wakes ten times: an idle server is idle."""
        while not await self.on_tick(0):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(DATE_SECONDS):
                    await self._is_asked_to_stop.wait()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are heeded by the process as a whole: the scheduler stops with the API."""
        yield


class _Errors(logging.Handler):
    """What uvicorn would print in its own way becomes one of the events that our own log lines are made from."""

    def __init__(self, telemetry: Telemetry) -> None:
        super().__init__(logging.ERROR)
        self._telemetry = telemetry

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        why = record.getMessage().strip() if error is None else f"{type(error).__name__}: {error}{_place_of(error)}"
        self._telemetry.emit(TelemetryEvent.API_FAILED, why=why)


def _place_of(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""


def _listen_to(logger: logging.Logger, telemetry: Telemetry) -> None:
    """Errors only: what strangers send that is no HTTP is none of ours."""
    logger.propagate = False
    logger.handlers = [_Errors(telemetry)]


def _trusting() -> ssl.SSLContext:
    """For asking ourselves: the certificate is made for another name than loopback."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context

"""`--metrics-port`: Prometheus metrics of a scheduler that has no API."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from ork.errors import OrkError, UsageError

if TYPE_CHECKING:
    from ork.app.installation import Installation
    from ork.telemetry import Telemetry

REQUEST_SECONDS = 5.0
MOST_AT_ONCE = 8


async def serve_metrics(installation: Installation, telemetry: Telemetry, host: str, port: int) -> asyncio.Server:
    """Serves `GET /metrics` and nothing else, until closed."""
    try:
        from ork.api.metrics import MEDIA_TYPE, render_metrics
    except ModuleNotFoundError as error:
        raise UsageError(
            f"metrics need a package that is not installed: {error.name}", hint="pip install 'ork-orchestrator[server]'"
        ) from None
    semaphore = asyncio.Semaphore(MOST_AT_ONCE)

    async def response(reader: asyncio.StreamReader) -> tuple[str, bytes]:
        line = await reader.readline()
        if line.split(b" ")[:2] != [b"GET", b"/metrics"]:
            return "404 Not Found", b"only GET /metrics\n"
        try:
            return "200 OK", await render_metrics(installation.store, telemetry)
        except OrkError as problem:
            return "503 Service Unavailable", f"{problem.message}\n".encode()

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(TimeoutError, OSError, ValueError):
            async with asyncio.timeout(REQUEST_SECONDS), semaphore:
                status, body = await response(reader)
                head = f"HTTP/1.1 {status}\r\nContent-Type: {MEDIA_TYPE}\r\nContent-Length: {len(body)}\r\n"
                writer.write(f"{head}Connection: close\r\n\r\n".encode() + body)
                await writer.drain()
        writer.close()

    try:
        return await asyncio.start_server(respond, host, port, limit=8192)
    except OSError as error:
        raise UsageError(
            f"cannot listen on {host}:{port}: {error.strerror}", hint="choose another --metrics-port"
        ) from None

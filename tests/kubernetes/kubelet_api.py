"""The part of a kubelet's own server that the API server asks: logs of containers."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.kubernetes.container_runs import ContainerRun
from tests.kubernetes.engine import Engine

FindContainer = Callable[[str, str, str], "ContainerRun | None"]


class KubeletApi:
    def __init__(self, find: FindContainer, engine: Engine, certificate: tuple[Path, Path]) -> None:
        self._find, self._engine = find, engine
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.load_cert_chain(*certificate)
        self.port = 0

    async def start(self) -> int:
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self.port

    async def close(self) -> None:
        self._server.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, ssl.SSLError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            url = urlsplit(head.split(b" ", 2)[1].decode())
            await self._log(writer, url.path, {name: values[0] for name, values in parse_qs(url.query).items()})
        with suppress(OSError, ssl.SSLError):
            writer.close()

    async def _log(self, writer: asyncio.StreamWriter, path: str, query: dict[str, str]) -> None:
        parts = [unquote(part) for part in path.strip("/").split("/")]
        if len(parts) != 4 or parts[0] != "containerLogs":
            return await _say(writer, "404 Not Found", f"no such page: {path}")
        run = self._find(*parts[1:])
        if run is None:
            return await _say(writer, "404 Not Found", f'pod "{parts[2]}" or its container "{parts[3]}" not found')
        container = run.previous_id if query.get("previous") == "true" else run.id
        if not container:
            waits = run.state.get("waiting", {}).get("reason", "ContainerCreating")
            problem = f'container "{run.name}" in pod "{parts[2]}" is waiting to start: {waits}'
            return await _say(writer, "400 Bad Request", problem)
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
        )
        async for part in _limited(self._engine.logs(container, **_asked(query)), query.get("limitBytes")):
            writer.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
            await writer.drain()
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return None


async def _say(writer: asyncio.StreamWriter, status: str, text: str) -> None:
    body = text.encode()
    writer.write(
        f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
        + body
    )
    await writer.drain()


def _asked(query: dict[str, str]) -> dict[str, str]:
    """The same wishes in the engine's words."""
    found = {"follow": "1"} if query.get("follow") == "true" else {}
    if query.get("timestamps") == "true":
        found["timestamps"] = "1"
    if "tailLines" in query:
        found["tail"] = query["tailLines"]
    if "sinceSeconds" in query:
        found["since"] = str(time.time() - float(query["sinceSeconds"]))
    if "sinceTime" in query:
        found["since"] = str(datetime.fromisoformat(query["sinceTime"]).timestamp())
    return found


async def _limited(parts: AsyncIterator[bytes], limit: str | None) -> AsyncIterator[bytes]:
    left: Any = int(limit) if limit else float("inf")
    async for part in parts:
        if len(part) >= left:
            yield part[: int(left)]
            return
        left -= len(part)
        yield part

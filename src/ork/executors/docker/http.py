"""HTTP/1.1 as far as a container engine speaks it: one request for each connection, bodies as streams.

What it is for is to know, when something breaks, whether the engine may have carried out what it was asked.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Self

from ork.errors import AnswerLostError, EngineUnreachableError
from ork.executors.docker.address import EngineAddress

CONNECT_SECONDS = 10.0
CHUNK = 1 << 16
_LONGEST_LINE = 1 << 16
_MOST_HEADERS = 200
_NO_BODY = (204, 304)


@dataclass(slots=True)
class Answer:
    """Its head has arrived; the body is read as it comes. To be used in `async with`, which lets go of the connection."""

    status: int
    headers: Mapping[str, str]
    _reader: asyncio.StreamReader
    _writer: asyncio.StreamWriter

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        _close(self._writer)

    async def read(self, limit: int) -> bytes:
        """The whole body; AnswerLostError if it breaks off or is larger than the limit."""
        body = bytearray()
        async for part in self.parts():
            body += part
            if len(body) > limit:
                raise AnswerLostError(f"the engine's answer has more than {limit} bytes")
        return bytes(body)

    async def parts(self) -> AsyncIterator[bytes]:
        """The body in pieces, as they arrive; AnswerLostError if it breaks off."""
        try:
            if self.status in _NO_BODY:
                return
            if self.headers.get("transfer-encoding", "").lower() == "chunked":
                body = self._chunked()
            elif "content-length" in self.headers:
                body = self._counted(int(self.headers["content-length"]))
            else:
                body = self._until_closed()
            async for part in body:
                yield part
        except (OSError, EOFError, ValueError) as error:
            raise AnswerLostError(f"the engine's answer broke off: {error or type(error).__name__}") from None

    async def _chunked(self) -> AsyncIterator[bytes]:
        while True:
            size = int((await _line(self._reader)).partition(b";")[0], 16)
            async for part in self._counted(size):
                yield part
            end = await _line(self._reader)
            if size == 0:
                while end:
                    end = await _line(self._reader)  # trailers mean nothing to us
                return
            if end:
                raise ValueError("a chunk is longer than it says")

    async def _counted(self, size: int) -> AsyncIterator[bytes]:
        while size > 0:
            part = await self._reader.read(min(size, CHUNK))
            if not part:
                raise EOFError("the connection was closed")
            size -= len(part)
            yield part

    async def _until_closed(self) -> AsyncIterator[bytes]:
        while part := await self._reader.read(CHUNK):
            yield part


async def ask(
    address: EngineAddress,
    method: str,
    target: str,
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
) -> Answer:
    """The head of the answer. EngineUnreachableError: nothing was sent. AnswerLostError: it may have been done."""
    reader, writer = await _connect(address)
    try:
        writer.write(_head(address, method, target, headers or {}, body) + (body or b""))
        await writer.drain()
        status, answered = await _read_head(reader)
    except (OSError, EOFError, ValueError) as error:
        _close(writer)
        raise AnswerLostError(f"no answer from the engine at {address}: {error or type(error).__name__}") from None
    except BaseException:
        _close(writer)
        raise
    return Answer(status, answered, reader, writer)


async def _connect(address: EngineAddress) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            if address.path is not None:
                return await asyncio.open_unix_connection(address.path, limit=_LONGEST_LINE)
            return await asyncio.open_connection(address.host, address.port, limit=_LONGEST_LINE, ssl=address.tls())
    except (OSError, TimeoutError) as error:
        number = getattr(error, "errno", None)
        why = os.strerror(number) if number else str(error) or "no answer"
        hint = "is it running? `ork doctor` tries it; DOCKER_HOST or `host` in workers.yaml says where it is"
        raise EngineUnreachableError(f"there is no container engine at {address}: {why}", hint=hint) from None


def _head(address: EngineAddress, method: str, target: str, headers: Mapping[str, str], body: bytes | None) -> bytes:
    all_headers = {"Host": address.host, "Connection": "close", "User-Agent": "ork", **headers}
    if body is not None or method in ("POST", "PUT"):
        all_headers["Content-Length"] = str(len(body or b""))
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in all_headers.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


async def _read_head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    while True:
        version, status, *_ = (await _line(reader)).split(b" ", 2)
        if not version.startswith(b"HTTP/1."):
            raise ValueError("it does not speak HTTP/1.1")
        headers = await _read_headers(reader)
        if not status.startswith(b"1"):  # 100 Continue and its like come before the answer
            return int(status), headers


async def _read_headers(reader: asyncio.StreamReader) -> dict[str, str]:
    headers: dict[str, str] = {}
    for _ in range(_MOST_HEADERS):
        line = await _line(reader)
        if not line:
            return headers
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.strip().lower()] = value.strip()
    raise ValueError("too many headers")


async def _line(reader: asyncio.StreamReader) -> bytes:
    line = await reader.readline()
    if not line.endswith(b"\n"):
        raise EOFError("the connection was closed")
    return line.rstrip(b"\r\n")


def _close(writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError, RuntimeError):
        writer.close()

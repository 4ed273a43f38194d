"""Compresses JSON responses with gzip for clients that accept it. Streams and logs are sent as they are."""

from __future__ import annotations

import asyncio
import gzip

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LEAST_BYTES = 1024
LOOP_BYTES = 32 << 10
"""Up to this size a response is compressed in the event loop, in about a millisecond; a larger one in a thread."""
_LEVEL = 5
_KINDS = ("application/json", "application/problem+json")


class Compression:
    """An ASGI application that wraps another one."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        is_accepted = accepts_gzip(Headers(scope=scope).get("accept-encoding", ""))
        await self.app(scope, receive, _CompressedSend(send, is_accepted))


class _CompressedSend:
    """Holds the start of a JSON response back until its body is known. All JSON responses are sent as one message."""

    def __init__(self, send: Send, is_accepted: bool) -> None:
        self._send = send
        self._is_accepted = is_accepted
        self._start: Message | None = None

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start" and _is_json(message):
            self._start = message
            return
        if self._start is not None:
            message = await self._with_body(self._start, message)
            self._start = None
        await self._send(message)

    async def _with_body(self, start: Message, message: Message) -> Message:
        headers = MutableHeaders(scope=start)
        headers.add_vary_header("Accept-Encoding")
        body: bytes = message.get("body", b"")
        if self._is_accepted and len(body) >= LEAST_BYTES and not message.get("more_body", False):
            small = len(body) <= LOOP_BYTES
            body = gzip.compress(body, _LEVEL, mtime=0) if small else await asyncio.to_thread(_compressed, body)
            headers["Content-Encoding"] = "gzip"
            headers["Content-Length"] = str(len(body))
            message = {**message, "body": body}
        await self._send(start)
        return message


def _compressed(body: bytes) -> bytes:
    return gzip.compress(body, _LEVEL, mtime=0)


def _is_json(start: Message) -> bool:
    kind = Headers(raw=start.get("headers", [])).get("content-type", "")
    return kind.partition(";")[0].strip() in _KINDS


def accepts_gzip(accepted: str) -> bool:
    for each in accepted.split(","):
        coding, _, weight = each.partition(";")
        if coding.strip().lower() in ("gzip", "*"):
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False

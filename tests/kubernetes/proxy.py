"""Stands between a client and the API server, counts what is asked, and breaks what it is asked to break.

It lives in a thread of its own. Its switches can be used from any other thread.
"""

from __future__ import annotations

import asyncio
import json
import random
import ssl
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlsplit

import httpx2

from tests.kubernetes.cluster import Cluster

T = TypeVar("T")
_NOT_PASSED_ON = {"host", "connection", "content-length", "transfer-encoding", "accept-encoding", "content-encoding"}


@dataclass
class Call:
    """`status` is 0 until there is an answer; `lost`: executed, and the answer thrown away."""

    method: str
    path: str
    query: dict[str, str]
    status: int = 0
    lost: bool = False

    @property
    def is_watch(self) -> bool:
        return self.query.get("watch") in ("1", "true")


Match = Callable[[Call], bool]


def everything(call: Call) -> bool:
    return True


def writes(call: Call) -> bool:
    return call.method != "GET"


@dataclass
class _Refusal:
    status: int
    match: Match
    left: float
    retry_after: int | None


class FaultProxy:
    def __init__(self, cluster: Cluster) -> None:
        self.calls: list[Call] = []
        self._target = cluster.url
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.load_cert_chain(*cluster.certificate)
        self._ca = str(cluster.ca)
        self._random = random.Random(0)
        self._watches: set[asyncio.StreamWriter] = set()
        self._open: set[asyncio.StreamWriter] = set()
        self._cutter: asyncio.Task[None] | None = None
        self.heal()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run_loop, name="fault-proxy", daemon=True)
        self._thread.start()
        self.port = self._call(self._begin())
        self.url = f"https://127.0.0.1:{self.port}"
        self.kubeconfig = cluster.write_kubeconfig(f"proxy-{self.port}", url=self.url)

    # Switches.

    def lose_answers(self, share: float = 1.0, match: Match = writes) -> None:
        """That share of the requests that match is executed, and the connection closed in place of an answer."""
        self._losses = (share, match)

    def refuse(
        self, status: int, match: Match = everything, *, times: float = 1, retry_after: int | None = None
    ) -> None:
        """The next requests that match are answered with this status and not passed on: 401, 403, 429, 500, 503."""
        self._refusals.append(_Refusal(status, match, times, retry_after))

    def expire_watches(self, times: int = 1) -> None:
        """Ends open watches; the next ones are told that their resourceVersion is too old (410)."""
        self._expired = times
        self.cut_watches_now()

    def cut_watches(self, every: float | None) -> None:
        """Cuts all watches every so many seconds; None ends that."""
        self._call(self._set_cutter(every))

    def cut_watches_now(self) -> None:
        self._loop.call_soon_threadsafe(self._abort, self._watches)

    def slow_down(self, seconds: float, match: Match = everything) -> None:
        """Requests that match wait so long before they are passed on."""
        self._delays = (seconds, match)

    def go_away(self) -> None:
        """Nobody gets a connection, and open ones are cut, until `heal`."""
        self._away = True
        self._loop.call_soon_threadsafe(self._abort, self._open)

    def heal(self) -> None:
        """No fault from now on, except the cutting of watches, which `cut_watches(None)` ends."""
        self._losses: tuple[float, Match] = (0.0, everything)
        self._refusals: list[_Refusal] = []
        self._delays: tuple[float, Match] = (0.0, everything)
        self._expired = 0
        self._away = False

    def close(self) -> None:
        self._call(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)

    # Passing on.

    def _run_loop(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    async def _begin(self) -> int:
        verify = ssl.create_default_context(cafile=self._ca)
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=32)
        self._http = httpx2.AsyncClient(
            base_url=self._target, verify=verify, limits=limits, timeout=None, trust_env=False
        )
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls)
        return int(self._server.sockets[0].getsockname()[1])

    async def _end(self) -> None:
        await self._set_cutter(None)
        self._server.close()
        self._abort(self._open)
        await self._http.aclose()

    async def _set_cutter(self, every: float | None) -> None:
        if self._cutter is not None:
            self._cutter.cancel()
            self._cutter = None
        if every is not None:
            self._cutter = asyncio.create_task(self._cut_for_ever(every))

    async def _cut_for_ever(self, every: float) -> None:
        while True:
            await asyncio.sleep(every)
            self._abort(self._watches)

    @staticmethod
    def _abort(writers: set[asyncio.StreamWriter]) -> None:
        for writer in list(writers):
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._away:
            writer.transport.abort()
            return
        self._open.add(writer)
        try:
            with suppress(OSError, ssl.SSLError, asyncio.IncompleteReadError, httpx2.HTTPError):
                while await self._one(reader, writer):
                    pass
        finally:
            self._open.discard(writer)
            self._watches.discard(writer)
            writer.transport.abort()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """False if the connection is to be closed."""
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, target, _ = lines[0].split(" ", 2)
        headers = [
            (name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines[1:] if line)
        ]
        body = await reader.readexactly(int(dict(headers).get("content-length", 0)))
        url = urlsplit(target)
        call = Call(method, url.path, {name: values[0] for name, values in parse_qs(url.query).items()})
        self.calls.append(call)
        seconds, slowed = self._delays
        if seconds and slowed(call):
            await asyncio.sleep(seconds)
        if await self._refused(call, writer):
            return True
        passed = [(name, value) for name, value in headers if name not in _NOT_PASSED_ON]
        async with self._http.stream(method, target, headers=passed, content=body) as answer:
            call.status = answer.status_code
            share, match = self._losses
            if match(call) and self._random.random() < share:
                await answer.aread()
                call.lost = True
                return False
            await self._pass_back(call, answer, writer)
        return True

    async def _pass_back(self, call: Call, answer: httpx2.Response, writer: asyncio.StreamWriter) -> None:
        if call.is_watch:
            self._watches.add(writer)
        head = [f"HTTP/1.1 {answer.status_code} {answer.reason_phrase}", "Transfer-Encoding: chunked"]
        head += [f"{name}: {value}" for name, value in answer.headers.items() if name not in _NOT_PASSED_ON]
        writer.write("\r\n".join([*head, "", ""]).encode("latin-1"))
        async for part in answer.aiter_bytes():
            if part:
                writer.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
                await writer.drain()
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        self._watches.discard(writer)

    async def _refused(self, call: Call, writer: asyncio.StreamWriter) -> bool:
        if call.is_watch and self._expired > 0:
            self._expired -= 1
            event = {"type": "ERROR", "object": _status(410, "Expired", "too old resource version")}
            await _write(writer, call, 200, event)
            return True
        for refusal in self._refusals:
            if refusal.left > 0 and refusal.match(call):
                refusal.left -= 1
                reasons = {401: "Unauthorized", 403: "Forbidden", 429: "TooManyRequests", 410: "Expired"}
                status = _status(refusal.status, reasons.get(refusal.status, "InternalError"), "refused by the test")
                more = f"Retry-After: {refusal.retry_after}\r\n" if refusal.retry_after is not None else ""
                await _write(writer, call, refusal.status, status, more)
                return True
        return False


def _status(code: int, reason: str, message: str) -> dict[str, Any]:
    about = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    return {**about, "message": message, "reason": reason, "code": code}


async def _write(writer: asyncio.StreamWriter, call: Call, status: int, body: Any, more: str = "") -> None:
    call.status = status
    text = json.dumps(body).encode() + b"\n"
    head = f"HTTP/1.1 {status} Refused\r\nContent-Type: application/json\r\n{more}Content-Length: {len(text)}\r\n\r\n"
    writer.write(head.encode() + text)
    await writer.drain()

"""Clients that send slowly, too much, or no HTTP at all: each is turned away alone, and others are answered."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from ork.api import connections
from ork.api.server import ApiServer, Place
from ork.model.access import Role
from ork.telemetry import Happening
from tests.unit.api.conftest import Bench

PATIENCE_SECONDS = 30
HOST = b"Host: localhost\r\n"


class Site:
    """The API on a real socket, spoken to in bytes."""

    def __init__(self, port: int, token: str) -> None:
        self._port = port
        self.authorization = f"Authorization: Bearer {token}\r\n".encode()

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                yield reader, writer
        finally:
            writer.close()

    async def say(self, *parts: bytes) -> bytes:
        """Everything that comes back until the server closes the connection."""
        async with self.connect() as (reader, writer):
            for part in parts:
                writer.write(part)
                await writer.drain()
            return await _rest(reader)

    async def status(self, request: bytes) -> int:
        head = (await self.say(request)).partition(b"\r\n")[0]
        return int(head.split()[1]) if head else 0

    async def is_well(self) -> bool:
        return await self.status(b"GET /healthz HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n") == 200


async def _rest(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""


@asynccontextmanager
async def served(bench: Bench) -> AsyncIterator[Site]:
    server = ApiServer(bench.app, Place("127.0.0.1", 0), bench.api.telemetry)
    work = asyncio.create_task(server.run())
    await server.check_health()
    yield Site(int(server.url.rpartition(":")[2]), await bench.token(Role.ADMIN))
    server.stop()
    await work


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 0.2)


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize(
    "beginning",
    [b"", b"GET /healthz HT", b"GET /healthz HTTP/1.1\r\n" + HOST, b"GET /healthz HTTP/1.1\r\n" + HOST + b"X: y"],
    ids=["nothing", "half a line", "half a head", "half a header"],
)
async def test_who_never_finishes_a_request_is_left_and_others_are_answered(bench: Bench, beginning: bytes) -> None:
    async with served(bench) as site:
        assert await site.say(beginning) == b""
        assert await site.is_well()


@pytest.mark.usefixtures("hasty")
async def test_a_body_that_trickles_is_not_waited_for(bench: Bench) -> None:
    await bench.deploy()
    async with served(bench) as site:
        head = b"POST /api/v1/workflows/flow/runs HTTP/1.1\r\n" + HOST + site.authorization
        answer = await site.say(head + b"Content-Length: 1000\r\n\r\n", b"{")
        assert b" 201 " not in answer
        assert await site.is_well()
    assert bench.api.telemetry.counts[Happening.API_FAILED] == 0


@pytest.mark.usefixtures("hasty")
async def test_a_body_that_comes_steadily_may_take_its_time(bench: Bench) -> None:
    await bench.deploy()
    body = b" " * 40_000 + b"{}"
    async with served(bench) as site, site.connect() as (reader, writer):
        head = b"POST /api/v1/workflows/flow/runs HTTP/1.1\r\n" + HOST + site.authorization
        writer.write(head + f"Connection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode())
        for place in range(0, len(body), 2000):
            writer.write(body[place : place + 2000])
            await asyncio.sleep(0.03)  # the promise is about time: all in all three times the limit
        assert b" 201 " in (await _rest(reader)).partition(b"\r\n")[0]


@pytest.mark.usefixtures("hasty")
async def test_an_answer_that_takes_long_is_not_cut_off(bench: Bench) -> None:
    async with served(bench) as site, site.connect() as (reader, writer):
        writer.write(b"GET /api/v1/events HTTP/1.1\r\n" + HOST + site.authorization + b"\r\n")
        await reader.readuntil(b"event: ready")
        await asyncio.sleep(0.5)  # the promise is about time: longer than a request may take
        await bench.deploy()
        await bench.run()
        bench.api.hub.poke()
        await reader.readuntil(b"event: run")
        bench.api.hub.close()


async def test_one_connection_too_many_is_closed_and_those_before_go_on(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 2)
    async with served(bench) as site, site.connect() as (reader, writer), site.connect():
        assert not await site.is_well()
        writer.write(b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n")
        assert b" 200 " in await reader.readline()


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\n" + HOST + b"Host: evil.example\r\n\r\n",
        b"GET /" + b"x" * 200_000 + b" HTTP/1.1\r\n" + HOST + b"\r\n",
        b"GET /healthz HTTP/1.1\r\n" + HOST + b"X: " + b"x" * 200_000 + b"\r\n\r\n",
        b"POST /api/v1/wake HTTP/1.1\r\n" + HOST + b"Content-Length: -1\r\n\r\n",
        b"POST /api/v1/wake HTTP/1.1\r\n" + HOST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST /api/v1/wake HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: gzip\r\n\r\n",
    ],
    ids=["tls", "version", "no host", "two hosts", "long path", "long header", "length", "lengths", "encoding"],
)
async def test_what_is_no_request_is_refused_without_a_word_in_the_log(
    bench: Bench, request_bytes: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    async with served(bench) as site:
        # 0: it was so much that the connection broke before the answer was read.
        assert await site.status(request_bytes) not in range(1, 400)
        assert await site.is_well()
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "get", "X-ANY"])
async def test_a_method_nobody_answers_is_refused_with_those_there_are(bench: Bench, method: str) -> None:
    async with served(bench) as site:
        for path, allowed in ((b"/api/v1/runs", b"allow: GET"), (b"/api/v1/workflows", b"allow: GET, POST")):
            request = method.encode() + b" " + path + b" HTTP/1.1\r\n" + HOST + b"Connection: close\r\n"
            assert await site.status(request + b"\r\n") == 401
            told = await site.say(request + site.authorization + b"\r\n")
            assert b" 405 " in told.partition(b"\r\n")[0]
            assert allowed in told
            assert b"access-control" not in told.lower()


async def test_a_path_in_another_form_is_no_way_around_the_guard(bench: Bench) -> None:
    async with served(bench) as site:
        for path in (b"http://localhost/api/v1/runs", b"//api/v1/runs", b"/api/v1/../v1/runs", b"/healthz/..%2fapi"):
            request = b"GET " + path + b" HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"
            assert await site.status(request) == 401


async def test_an_error_of_ours_is_told_to_the_log_and_not_to_the_caller(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[dict[str, object]] = []
    bench.api.telemetry.listen(lambda _, fields: told.append(fields))

    async def fail(*_: object) -> None:
        raise ZeroDivisionError("inside knowledge")

    monkeypatch.setattr(bench.store, "list_runs", fail)
    async with served(bench) as site:
        request = b"GET /api/v1/runs HTTP/1.1\r\n" + HOST + site.authorization + b"Connection: close\r\n\r\n"
        answer = await site.say(request)
    assert b" 500 " in answer.partition(b"\r\n")[0]
    assert b"inside knowledge" not in answer
    (fields,) = told
    assert "ZeroDivisionError: inside knowledge" in str(fields["why"])

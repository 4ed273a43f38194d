"""Clients that send slowly, too much, or no HTTP at all: each is turned away alone, and others are answered."""

from __future__ import annotations

import asyncio
import shutil
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from ork.api import connections, tls
from ork.api.quotas import Quota
from ork.api.server import ApiServer, ListenAddress
from ork.model.access import Role
from ork.model.ids import RunId
from ork.model.run import NewRun
from ork.telemetry import TelemetryEvent
from tests.unit.api.conftest import NOW, Bench

PATIENCE_SECONDS = 30
TCP_CLOSE, TCP_CLOSE_WAIT = 7, 8  # as the kernel numbers them
HOST = b"Host: localhost\r\n"


HEALTH = b"GET /healthz HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"


def site_authorization(token: str) -> bytes:
    return f"Authorization: Bearer {token}\r\n".encode()


class Site:
    """The API on a real socket, spoken to in bytes."""

    def __init__(self, port: int, token: str) -> None:
        self.port = port
        self.authorization = site_authorization(token)

    @asynccontextmanager
    async def connect(
        self, source: str = "127.0.0.1"
    ) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, local_addr=(source, 0))
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
    server = ApiServer(bench.app, ListenAddress("127.0.0.1", 0), bench.api.telemetry)
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
    assert bench.api.telemetry.counts[TelemetryEvent.API_FAILED] == 0


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
        bench.api.hub.notify()
        await reader.readuntil(b"event: run")
        bench.api.hub.close()


async def test_connections_without_a_request_make_room_the_oldest_first(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 3)
    async with served(bench) as site, AsyncExitStack() as stack:
        silent = [await stack.enter_async_context(site.connect()) for _ in range(3)]
        silent[0][1].write(b"GET /healthz HT")
        assert await site.is_well()
        assert await _rest(silent[0][0]) == b""
        _, writer = silent[2]
        writer.write(HEALTH)
        assert b" 200 " in await silent[2][0].readline()


async def test_the_address_with_most_silent_connections_makes_room(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 4)
    async with served(bench) as site, AsyncExitStack() as stack:
        reader, writer = await stack.enter_async_context(site.connect("127.0.0.2"))
        for _ in range(10):
            await stack.enter_async_context(site.connect())
        assert await site.is_well()
        writer.write(HEALTH)  # the oldest of all, and kept
        assert b" 200 " in await reader.readline()


async def test_when_all_are_busy_only_probes_are_answered(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 2)
    monkeypatch.setattr(connections, "RESERVED_FOR_PROBES", 1)
    async with served(bench) as site, AsyncExitStack() as stack:
        busy = [await stack.enter_async_context(site.connect()) for _ in range(2)]
        for reader, writer in busy:
            writer.write(b"GET /api/v1/events HTTP/1.1\r\n" + HOST + site.authorization + b"\r\n")
            await reader.readuntil(b"event: ready")
        for path in (b"/healthz", b"/readyz", b"/api/v1/healthz"):
            assert await site.status(b"GET " + path + b" HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n") == 200
        told = await site.say(b"GET /api/v1/runs HTTP/1.1\r\n" + HOST + site.authorization + b"\r\n")
        assert b" 503 " in told.partition(b"\r\n")[0]
        assert b"ORK836" in told
        await stack.enter_async_context(site.connect())  # silent, in the place that is kept for probes
        assert await site.is_well()
        bench.api.hub.close()


async def test_one_token_cannot_open_more_streams_than_its_share(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench.app._streams, "_quota", Quota(10, 2))
    events = b"GET /api/v1/events HTTP/1.1\r\n" + HOST
    async with served(bench) as site, AsyncExitStack() as stack:
        for _ in range(2):
            reader, writer = await stack.enter_async_context(site.connect())
            writer.write(events + site.authorization + b"\r\n")
            await reader.readuntil(b"event: ready")
        told = await site.say(events + site.authorization + b"Connection: close\r\n\r\n")
        assert b" 429 " in told.partition(b"\r\n")[0]
        other = f"Authorization: Bearer {await bench.token(Role.VIEWER)}\r\n".encode()
        reader, writer = await stack.enter_async_context(site.connect())
        writer.write(events + other + b"\r\n")
        await reader.readuntil(b"event: ready")
        bench.api.hub.close()


async def test_a_client_that_does_not_read_its_answer_is_left(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "UNREAD_SECONDS", 0.2)
    version = await bench.deploy()
    large = {"n": 1, "event": {"text": "x" * 900_000}}
    await bench.store.create_runs([NewRun(RunId("00000000000a"), "flow", version.id, large)], NOW)
    request = (
        b"GET /api/v1/runs/@last HTTP/1.1\r\n" + HOST + site_authorization(await bench.token(Role.ADMIN)) + b"\r\n"
    )
    async with served(bench) as site:
        with socket.create_connection(("127.0.0.1", site.port)) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.setblocking(False)
            for _ in range(20):  # more than the buffers in between hold
                await asyncio.get_running_loop().sock_sendall(client, request)
            async with asyncio.timeout(PATIENCE_SECONDS):
                while not _is_cut(client):
                    await asyncio.sleep(0.05)
        assert await site.is_well()


def _is_cut(client: socket.socket) -> bool:
    """Whether the server has closed or reset the connection; nothing is read for that."""
    state = client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]
    return state in (TCP_CLOSE, TCP_CLOSE_WAIT)


@pytest.mark.usefixtures("hasty")
async def test_the_body_of_a_refused_request_is_not_waited_for(bench: Bench) -> None:
    async with served(bench) as site, site.connect() as (reader, writer):
        writer.write(b"POST /api/v1/wake HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n")
        assert b" 401 " in await reader.readline()
        with pytest.raises(ConnectionError):  # noqa: PT012 (it comes when the server has let go)
            while True:  # far quicker than the slowest that is allowed
                writer.write(b"800\r\n" + b"x" * 2048 + b"\r\n")
                await writer.drain()
                await asyncio.sleep(0.01)
        assert await site.is_well()


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


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with cert.pem and key.pem for 127.0.0.1."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not here to make a certificate")
    folder = tmp_path_factory.mktemp("certificate")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "key.pem", "-out", "cert.pem"],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip
    return folder


async def test_connections_that_never_agree_on_tls_make_room_as_well(
    bench: Bench, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 3)
    monkeypatch.setattr(tls, "HANDSHAKE_SECONDS", 3600.0)
    cert, key = str(certificate / "cert.pem"), str(certificate / "key.pem")
    server = ApiServer(bench.app, ListenAddress("127.0.0.1", 0, tls_cert=cert, tls_key=key), bench.api.telemetry)
    work = asyncio.create_task(server.run())
    await server.check_health()
    site, context = Site(int(server.url.rpartition(":")[2]), ""), ssl.create_default_context(cafile=cert)
    async with AsyncExitStack() as stack:
        silent = [await stack.enter_async_context(site.connect()) for _ in range(6)]
        silent[1][1].write(b"no TLS at all, but something like it")
        for _ in range(3):
            reader, writer = await asyncio.open_connection("127.0.0.1", site.port, ssl=context)
            writer.write(HEALTH)
            assert b" 200 " in await reader.readline()
            writer.close()
        for reader, _ in silent[:4]:
            assert await _rest(reader) == b""
    server.stop()
    await work
    assert bench.api.telemetry.counts[TelemetryEvent.API_FAILED] == 0


async def test_who_never_agrees_on_tls_is_left(
    bench: Bench, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls, "HANDSHAKE_SECONDS", 0.2)
    cert, key = str(certificate / "cert.pem"), str(certificate / "key.pem")
    server = ApiServer(bench.app, ListenAddress("127.0.0.1", 0, tls_cert=cert, tls_key=key), bench.api.telemetry)
    work = asyncio.create_task(server.run())
    async with Site(int(server.url.rpartition(":")[2]), "").connect() as (reader, _):
        assert await _rest(reader) == b""
    server.stop()
    await work

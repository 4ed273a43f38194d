"""What is made of an engine's answers, whole and broken."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest

from ork.errors import AnswerLostError, EngineUnreachableError
from ork.executors.docker.address import engine_address
from ork.executors.docker.calls import EngineCalls
from ork.executors.docker.engine import Engine
from ork.executors.docker.frames import unframed


async def told(folder: Path, answer: bytes, *, limit: int = 1000) -> tuple[int, bytes]:
    """Status and body of the answer of a server that says just these bytes, a few at a time."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for start in range(0, len(answer), 7):
            writer.write(answer[start : start + 7])
            await writer.drain()
        writer.close()

    server = await asyncio.start_unix_server(serve, str(folder / "s"))
    async with server, await EngineCalls(engine_address(f"unix://{folder}/s"))._send("GET", "/") as found:
        return found.status, await found.read(limit)


@pytest.mark.parametrize(
    ("answer", "status", "body"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, b"hello"),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\nTrailer: z\r\n\r\n",
            200,
            b"hello",
        ),
        (b"HTTP/1.0 404 Not Found\r\n\r\nuntil the end", 404, b"until the end"),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n", 204, b""),
    ],
)
def test_a_whole_answer_is_read_however_it_is_sent(tmp_path: Path, answer: bytes, status: int, body: bytes) -> None:
    assert asyncio.run(told(tmp_path, answer)) == (status, body)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Le",
        b"SSH-2.0-OpenSSH_9\r\n",
        b"HTTP/1.1 two hundred\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 30_000 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 200_000,
        b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhello\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nhel",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n" + b"x" * 5000,
    ],
    ids=lambda answer: answer[:40].decode(),
)
def test_a_broken_or_endless_answer_is_a_lost_one(tmp_path: Path, answer: bytes) -> None:
    with pytest.raises(AnswerLostError):
        asyncio.run(told(tmp_path, answer))


def test_frames_are_put_together_wherever_they_are_cut() -> None:
    sent = b"\x01\0\0\0\0\0\0\x03abc\x02\0\0\0\0\0\0\x02de\x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\x01f"

    async def pieces(size: int) -> list[tuple[int, bytes]]:
        async def parts():  # type: ignore[no-untyped-def]
            for start in range(0, len(sent), size):
                yield sent[start : start + size]

        return [piece async for piece in unframed(parts())]

    for size in range(1, len(sent) + 1):
        found = asyncio.run(pieces(size))
        assert b"".join(data for stream, data in found if stream == 1) == b"abcf"
        assert b"".join(data for stream, data in found if stream == 2) == b"de"


HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
FRAME = b"\x01\0\0\0\0\0\0\x01a"


async def closed_after(folder: Path, first: bytes, use: Callable[[Engine], Awaitable[None]]) -> None:
    """Returns once the client has closed its connection to an engine that sends only these bytes."""
    is_reached, is_closed = asyncio.Event(), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if b"/_ping" in await reader.readuntil(b"\r\n\r\n"):
            writer.write(b"HTTP/1.1 200 OK\r\nApi-Version: 1.43\r\nContent-Length: 0\r\n\r\n")
        else:
            writer.write(first)
            is_reached.set()
            with suppress(ConnectionResetError):  # closed with bytes that were not read
                await reader.read()
            is_closed.set()
        writer.close()

    async with await asyncio.start_unix_server(serve, str(folder / "s")), asyncio.timeout(30):
        using = asyncio.ensure_future(use(Engine(engine_address(f"unix://{folder}/s"))))
        await is_reached.wait()
        await asyncio.sleep(0.05)  # it holds at any moment; most likely the bytes have arrived by now
        using.cancel()
        await asyncio.wait([using])
        await is_closed.wait()


async def ask(engine: Engine) -> None:
    await engine.info()


async def follow(engine: Engine) -> None:
    async for _ in engine.logs("x", follow=True):
        pass


async def leave_early(engine: Engine) -> None:
    async for _ in engine.logs("x", follow=True):
        return


@pytest.mark.parametrize(
    ("first", "use"),
    [(b"", ask), (HEAD, follow), (HEAD + b"9\r\n" + FRAME + b"\r\n", follow), (HEAD + b"9\r\n" + FRAME + b"\r\n", leave_early)],
    ids=["waiting", "silent stream", "stream", "left early"],
)  # fmt: skip
def test_a_cancelled_request_closes_its_connection(
    tmp_path: Path, first: bytes, use: Callable[[Engine], Awaitable[None]]
) -> None:
    asyncio.run(closed_after(tmp_path, first, use))


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as Docker keeps it (ca.pem, cert.pem, key.pem): one certificate for `localhost`, for both sides."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not here to make a certificate")
    folder = tmp_path_factory.mktemp("docker")
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *names]
    subprocess.run([*made, "-keyout", folder / "key.pem", "-out", folder / "cert.pem"], check=True, capture_output=True)
    shutil.copy(folder / "cert.pem", folder / "ca.pem")
    return folder


async def ping_over_tls(certificates: Path, host: str, shown: Path) -> str:
    """Asks an engine that wants a certificate of its client."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=certificates / "ca.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(certificates / "cert.pem", certificates / "key.pem")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nApi-Version: 1.43\r\nContent-Length: 2\r\n\r\nOK")
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context) as server:
        port = server.sockets[0].getsockname()[1]
        return await Engine(engine_address(f"tcp://{host}:{port}", str(shown))).ping()


def test_an_engine_is_reached_over_tls_with_the_certificates_of_its_folder(certificates: Path) -> None:
    assert asyncio.run(ping_over_tls(certificates, "localhost", certificates)) == "1.43"


def test_a_certificate_for_another_host_is_refused(certificates: Path) -> None:
    with pytest.raises(EngineUnreachableError, match="certificate verify failed"):
        asyncio.run(ping_over_tls(certificates, "127.0.0.1", certificates))


def test_certificates_that_are_not_there_are_named(certificates: Path, tmp_path: Path) -> None:
    with pytest.raises(EngineUnreachableError, match=f"certificates in {tmp_path} cannot be read: No such file"):
        asyncio.run(ping_over_tls(certificates, "localhost", tmp_path))

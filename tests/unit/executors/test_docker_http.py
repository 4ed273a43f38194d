"""What is made of an engine's answers, whole and broken."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ork.errors import AnswerLostError
from ork.executors.docker.address import engine_address
from ork.executors.docker.calls import Calls
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
    async with server, await Calls(engine_address(f"unix://{folder}/s"))._send("GET", "/") as found:
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

"""Requests of the command line to a server: which are repeated, and what is said when none is answered."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ork.api.client.connection import Server
from ork.api.client.waiting import EventStream
from ork.errors import StoreError, StoreUnavailableError, UsageError
from tests.loopback import loopback

TOKEN = "ork_" + "k3J9x" * 8


@contextmanager
def scripted(*answers: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """A server that answers one request for each connection, closes it, and says what was asked."""
    asked: list[bytes] = []

    def serve(listener: socket.socket) -> None:
        for answer in answers:
            connection, _ = listener.accept()
            with connection:
                asked.append(connection.recv(1 << 16).partition(b"\r\n")[0])
                connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", asked
        thread.join(1)


def answer(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


def test_a_read_is_repeated_where_the_connection_was_closed(tmp_path: Path) -> None:
    with scripted(b"", answer(b'{"a": 1}')) as (url, asked):
        assert Server(url, TOKEN, str(tmp_path)).get("status") == {"a": 1}
    assert asked == [b"GET /api/v1/status HTTP/1.1"] * 2


def test_what_changes_something_is_sent_once(tmp_path: Path) -> None:
    with scripted(b"") as (url, asked), pytest.raises(StoreUnavailableError, match=f"cannot reach {url}: "):
        Server(url, TOKEN, str(tmp_path)).post("tick")
    assert asked == [b"POST /api/v1/tick HTTP/1.1"]


def test_where_nobody_listens_the_message_says_so(tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        server = Server(f"127.0.0.1:{unused.getsockname()[1]}", TOKEN, str(tmp_path))
        with pytest.raises(StoreUnavailableError, match="Connection refused") as refused:
            server.get("status")
    assert refused.value.hint == "is `ork serve` running there?"


def test_a_proxy_that_does_not_answer_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://me:secret@127.0.0.1:1")
    server = Server("http://ork.example", TOKEN, str(tmp_path))
    with pytest.raises(
        StoreUnavailableError, match=r"ork\.example through the proxy 127\.0\.0\.1:1: Connection refused"
    ):
        server.get("status")


def test_a_segment_of_a_path_stays_one(tmp_path: Path) -> None:
    with loopback() as site:
        with pytest.raises(StoreError, match="answered 404"):
            Server(site.url, TOKEN, str(tmp_path)).get("workflows", "..", "a/b", "x@1")
        assert [each.path for each in site.asked] == ["/api/v1/workflows/%2E%2E/a%2Fb/x@1"]


def test_a_user_in_the_address_is_neither_sent_nor_shown(tmp_path: Path) -> None:
    with loopback() as site:
        site.answers["/api/v1/status"] = (200, {})
        server = Server(site.url.replace("//", "//me:secret@"), TOKEN, str(tmp_path))
        server.get("status")
        assert site.asked[0].headers["Authorization"] == f"Bearer {TOKEN}"
        assert server.url == site.url


@pytest.mark.parametrize("address", ["ftp://x", "http://", "http://x:99999", "http://x?y", "http://[::1"])
def test_what_is_no_address_is_refused(tmp_path: Path, address: str) -> None:
    with pytest.raises(UsageError, match="is not the address of a server"):
        Server(address, TOKEN, str(tmp_path))


def test_events_wake_also_when_the_stream_breaks_off_and_continue_after_the_last_one(tmp_path: Path) -> None:
    event = b"id: 7\nevent: ready\ndata: {}\n\n"
    asked: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n" % (len(event), event))
        if len(asked) == 1:
            writer.close()
        else:
            await reader.read()
            writer.close()

    async def scene() -> None:
        listener = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = listener.sockets[0].getsockname()[1]
        events = EventStream(Server(f"127.0.0.1:{port}", TOKEN, str(tmp_path)))
        while len(asked) < 2:
            assert await events.wait(30)
        await events.close()
        listener.close()

    asyncio.run(scene())
    assert b"\r\nlast-event-id: 7\r\n" in asked[1].lower()

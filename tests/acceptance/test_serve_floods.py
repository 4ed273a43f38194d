"""A real `ork serve` under floods from one client: others are answered, health is told, memory stays bounded."""

from __future__ import annotations

import hashlib
import hmac
import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from ork.api.streams import STREAMS_OF_ONE_TOKEN
from tests.acceptance.conftest import Place
from tests.acceptance.waiting import wait_until
from tests.serving import Served

pytestmark = [pytest.mark.slow, pytest.mark.parametrize("place", ["sqlite"], indirect=True)]

FLOOD = 420
MEGABYTE = 1 << 20


@contextmanager
def flood(served: Served, request: bytes, number: int = FLOOD) -> Iterator[list[socket.socket]]:
    """That many connections, each of which sends this and then nothing more."""
    host, _, port = served.url.partition("://")[2].rpartition(":")
    with ExitStack() as stack:
        clients = []
        for _ in range(number):
            client = stack.enter_context(socket.create_connection((host, int(port)), timeout=30))
            client.sendall(request)
            clients.append(client)
        yield clients


def is_well(served: Served) -> bool:
    return served.ask("GET", "/healthz", Authorization="")[0] == 200 and served.ask("GET", "/runs")[0] == 200


def memory(served: Served) -> int:
    """Bytes of real memory that the server's process has."""
    return int(Path(f"/proc/{served.process.pid}/statm").read_text().split()[1]) * 4096


def new_token(place: Place) -> str:
    return str(json.loads(place.ork("token", "create", "--json"))["token"])


def test_half_open_connections_lock_nobody_out(place: Place) -> None:
    served = place.serve("--no-scheduler")
    for beginning in (b"", b"GET /api/v1/runs HTTP/1.1\r\nHost: loc"):
        with flood(served, beginning):
            assert all(is_well(served) for _ in range(5))


def test_streams_of_one_viewer_leave_room_for_all_others(place: Place) -> None:
    served = place.serve("--no-scheduler")
    token = new_token(place)
    head = f"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n"
    with flood(served, head.encode()) as clients:
        answers = [_beginning(client) for client in clients]
        assert answers.count(b"HTTP/1.1 200") == STREAMS_OF_ONE_TOKEN
        assert set(answers) - {b""} == {b"HTTP/1.1 200", b"HTTP/1.1 429"}
        assert is_well(served)
        assert served.ask("GET", "/runs", Authorization=f"Bearer {token}")[0] == 200


def _beginning(client: socket.socket) -> bytes:
    """Of its answer; nothing if the connection was closed to make room for another."""
    try:
        return client.recv(12)
    except ConnectionResetError:
        return b""


def hook(name: str, body_length: int) -> bytes:
    signature = "sha256=" + hmac.new(b"another", b"", hashlib.sha256).hexdigest()
    return (
        f"POST /api/v1/hooks/{name} HTTP/1.1\r\nHost: localhost\r\nX-Hub-Signature-256: {signature}\r\n"
        f"Content-Length: {body_length}\r\n\r\n"
    ).encode()


def test_half_sent_hook_bodies_cost_little_and_not_for_long(place: Place) -> None:
    place.environment["ORK_HOOK_HELD"] = "hook secret"
    served = place.serve("--no-scheduler")
    place.ork("deploy", "held.yaml")
    assert is_well(served)
    before = memory(served)
    half = b" " * (MEGABYTE - 1000)
    for name in ("held", "unknown"):
        with flood(served, hook(name, MEGABYTE - 1), 100) as clients:
            for client in clients:
                client.setblocking(False)
                _send_what_is_taken(client, half)
            assert is_well(served)
            assert memory(served) - before < 40 * MEGABYTE
    with flood(served, hook("held", MEGABYTE - 1), 1) as (client,):
        client.sendall(half)
        wait_until(lambda: client.recv(12) == b"HTTP/1.1 413")


def _send_what_is_taken(client: socket.socket, data: bytes) -> None:
    sent = 0
    try:
        while sent < len(data):
            sent += client.send(data[sent:])
    except (BlockingIOError, ConnectionError):
        return


def test_a_list_of_runs_with_large_params_costs_little(place: Place) -> None:
    served = place.serve("--no-scheduler")
    (place.folder / "large.yaml").write_text(
        "name: large\nparams: {text: {type: str, default: ''}}\ntasks:\n  a: {command: echo done}\n"
    )
    place.ork("deploy", "large.yaml")
    for _ in range(30):
        assert served.ask("POST", "/workflows/large/runs", {"params": {"text": "x" * 1_000_000}})[0] == 201
    before = memory(served)
    for _ in range(3):
        status, listed = served.ask("GET", "/runs?limit=1000")
        assert (status, len(listed["runs"]), len(json.dumps(listed)) < 100_000) == (200, 30, True)
    assert memory(served) - before < 10 * MEGABYTE
    shown = json.loads(place.ork("runs", "--json"))["runs"]
    through = json.loads(place.ork("--server", served.url, "runs", "--json"))["runs"]
    assert shown == through
    assert {run["params"] for run in shown} == {None}
    one = json.loads(place.ork("--server", served.url, "show", shown[0]["id"], "--json"))
    assert len(one["params"]["text"]) == 1_000_000

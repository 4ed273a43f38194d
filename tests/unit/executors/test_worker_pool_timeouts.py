"""Workers of which nothing is heard: how long they are waited for."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable

import pytest

from ork.executors.fork_servers import ForkServers
from ork.executors.worker_handle import WorkerHandle
from ork.executors.worker_pool import MAX_START_TIMEOUT_SECONDS, START_TIMEOUT_SECONDS, WorkerPool


class Listener:
    def __init__(self) -> None:
        self.back: list[str] = []

    def on_returned(self, attempt: str) -> None:
        self.back.append(attempt)

    def on_end(self, *_: object) -> None: ...

    def on_taken(self, *_: object) -> None: ...

    def on_status(self, *_: object) -> None: ...


class Server:
    interpreter = "python"
    has_served = True

    def __init__(self, last_worker_at: float) -> None:
        self.last_worker_at = last_worker_at
        self.is_killed = False

    def kill(self) -> None:
        self.is_killed = True


def judged(server: Server, asked: float) -> list[str]:
    """What is handed back of one attempt whose worker was asked for so many seconds ago and has said nothing."""
    listener = Listener()

    async def judge() -> None:
        owner = WorkerPool(listener, ForkServers())
        ours, theirs = socket.socketpair()
        resident = WorkerHandle(owner, ("python", "fork"), server, ours, None)  # type: ignore[arg-type]
        owner._busy["a"] = resident
        owner._working[resident] = None
        resident.give("a", b"")
        resident.begun_at -= asked
        owner._check_silent()
        owner.close()
        theirs.close()

    asyncio.run(judge())
    return listener.back


@pytest.fixture
def ago() -> Callable[[float], float]:
    return lambda seconds: time.monotonic() - seconds


def test_a_worker_that_a_silent_server_should_have_made_is_done_without(ago: Callable[[float], float]) -> None:
    server = Server(last_worker_at=ago(START_TIMEOUT_SECONDS + 1))
    assert judged(server, asked=START_TIMEOUT_SECONDS + 1) == ["a"]
    assert server.is_killed


def test_one_of_thousands_waits_as_long_as_its_server_makes_others(ago: Callable[[float], float]) -> None:
    server = Server(last_worker_at=ago(0.1))
    assert judged(server, asked=START_TIMEOUT_SECONDS * 2) == []
    assert not server.is_killed


def test_but_not_for_ever_and_the_others_keep_their_server(ago: Callable[[float], float]) -> None:
    server = Server(last_worker_at=ago(0.1))
    assert judged(server, asked=MAX_START_TIMEOUT_SECONDS + 1) == ["a"]
    assert not server.is_killed

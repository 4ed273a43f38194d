"""Ends that are told of together."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from ork.executors.fork_servers import ForkServers
from ork.executors.worker_handle import WorkerHandle
from ork.executors.worker_pool import MANY, EndBatch, WorkerPool


def test_what_was_heard_is_told_in_its_order_without_anybody_asking() -> None:
    async def on_message() -> list[tuple[str, bytes | None]]:
        told: list[tuple[str, bytes | None]] = []
        done = asyncio.Event()

        def tell(attempt: str, status: bytes | None) -> None:
            told.append((attempt, status))
            if len(told) == 2:
                done.set()

        together = EndBatch(tell)
        together.add("a", b"1")
        together.flush_soon()
        together.add("b", None)
        assert told == []
        await done.wait()
        return told

    assert asyncio.run(on_message()) == [("a", b"1"), ("b", None)]


class Listener:
    def __init__(self) -> None:
        self.ended: list[str] = []

    def on_end(self, attempt: str, _status: bytes | None) -> None:
        self.ended.append(attempt)

    def on_taken(self, *_: Any) -> None: ...

    def on_status(self, *_: Any) -> None: ...

    def on_returned(self, *_: Any) -> None: ...


class Server:
    has_served = True
    interpreter = "python"


def test_who_has_nothing_more_to_do_has_all_ends_told_at_once_and_who_has_waits_for_no_answer() -> None:
    async def hear() -> None:
        listener = Listener()
        pool = WorkerPool(listener, ForkServers())
        (ours, _theirs), kind = socket.socketpair(), ("python", "fork")
        resident = WorkerHandle(pool, kind, Server(), ours, None)  # type: ignore[arg-type]
        for attempt in ("a", "b"):
            resident.give(attempt, b"")
            pool._busy[attempt] = resident
        pool.on_message(resident, b"over\ta\t")
        pool.on_messages_read(resident)
        assert listener.ended == []
        pool.on_message(resident, b"over\tb\t")
        pool.on_messages_read(resident)
        assert listener.ended == ["a", "b"]
        pool.close()
        resident.detach()

    asyncio.run(hear())


def test_nobody_waits_for_more_than_are_worth_it() -> None:
    async def hear() -> None:
        listener = Listener()
        pool = WorkerPool(listener, ForkServers())
        (ours, _theirs), kind = socket.socketpair(), ("python", "shared")
        resident = WorkerHandle(pool, kind, Server(), ours, None)  # type: ignore[arg-type]
        attempts = [f"t{number}" for number in range(MANY + 1)]
        for attempt in attempts:
            resident.give(attempt, b"")
            pool._busy[attempt] = resident
        for attempt in attempts[:-1]:
            assert listener.ended == []
            pool.on_message(resident, f"over\t{attempt}\t".encode())
        pool.on_messages_read(resident)
        assert listener.ended == attempts[:-1]
        pool.close()
        resident.detach()

    asyncio.run(hear())

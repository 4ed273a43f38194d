"""Ends that are told of together."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from ork.executors.fork_servers import ForkServers
from ork.executors.resident import Resident
from ork.executors.residents import Residents
from ork.executors.together import MANY, Together


def test_what_was_heard_is_told_in_its_order_without_anybody_asking() -> None:
    async def heard() -> list[tuple[str, bytes | None]]:
        told: list[tuple[str, bytes | None]] = []
        done = asyncio.Event()

        def tell(attempt: str, status: bytes | None) -> None:
            told.append((attempt, status))
            if len(told) == 2:
                done.set()

        together = Together(tell)
        together.add("a", b"1")
        together.tell_soon()
        together.add("b", None)
        assert told == []
        await done.wait()
        return told

    assert asyncio.run(heard()) == [("a", b"1"), ("b", None)]


class Listener:
    def __init__(self) -> None:
        self.ended: list[str] = []

    def over(self, attempt: str, _status: bytes | None) -> None:
        self.ended.append(attempt)

    def taken(self, *_: Any) -> None: ...

    def told(self, *_: Any) -> None: ...

    def handed_back(self, *_: Any) -> None: ...


class Server:
    has_served = True
    interpreter = "python"


def test_who_has_nothing_more_to_do_has_all_ends_told_at_once_and_who_has_waits_for_no_answer() -> None:
    async def hear() -> None:
        listener = Listener()
        residents = Residents(listener, ForkServers())
        (ours, _theirs), kind = socket.socketpair(), ("python", "fork")
        resident = Resident(residents, kind, Server(), ours, None)  # type: ignore[arg-type]
        for attempt in ("a", "b"):
            resident.give(attempt, b"")
            residents._busy[attempt] = resident
        residents.heard(resident, b"over\ta\t")
        residents.heard_all(resident)
        assert listener.ended == []
        residents.heard(resident, b"over\tb\t")
        residents.heard_all(resident)
        assert listener.ended == ["a", "b"]
        residents.close()
        resident.let_go()

    asyncio.run(hear())


def test_nobody_waits_for_more_than_are_worth_it() -> None:
    async def hear() -> None:
        listener = Listener()
        residents = Residents(listener, ForkServers())
        (ours, _theirs), kind = socket.socketpair(), ("python", "shared")
        resident = Resident(residents, kind, Server(), ours, None)  # type: ignore[arg-type]
        attempts = [f"t{number}" for number in range(MANY + 1)]
        for attempt in attempts:
            resident.give(attempt, b"")
            residents._busy[attempt] = resident
        for attempt in attempts[:-1]:
            assert listener.ended == []
            residents.heard(resident, f"over\t{attempt}\t".encode())
        residents.heard_all(resident)
        assert listener.ended == attempts[:-1]
        residents.close()
        resident.let_go()

    asyncio.run(hear())

"""Datagrams bring the news; the counter is the truth; waiting costs nothing."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from ork.state.sqlite import SqliteStore
from ork.state.sqlite.wake import Waker, drain
from tests.conformance.state_samples import deploy


def test_a_waker_wakes_all_others_and_not_itself(tmp_path: Path) -> None:
    wakers = [Waker(str(tmp_path / "ork.db")) for _ in range(3)]
    sockets = [waker.listen() for waker in wakers]
    wakers[0].wake_others()
    wakers[0].wake_others()
    assert [drain(listener) for listener in sockets] == [False, True, True]
    assert [drain(listener) for listener in sockets] == [False, False, False]
    for waker, listener in zip(wakers, sockets, strict=True):
        listener.close()
        waker.close()
    assert os.listdir(wakers[0].folder) == []


def test_nobody_to_wake_is_no_error_and_makes_no_folder(tmp_path: Path) -> None:
    waker = Waker(str(tmp_path / "ork.db"))
    waker.wake_others()
    assert os.listdir(tmp_path) == []


def test_names_of_dead_listeners_are_taken_away(tmp_path: Path) -> None:
    dead, living = Waker(str(tmp_path / "ork.db")), Waker(str(tmp_path / "ork.db"))
    dead.listen().close()
    listener = living.listen()
    assert len(os.listdir(dead.folder)) == 2
    Waker(str(tmp_path / "ork.db")).wake_others()
    assert len(os.listdir(dead.folder)) == 1
    assert drain(listener)
    listener.close()


def test_a_listener_that_does_not_listen_holds_nobody_up(tmp_path: Path) -> None:
    lazy, busy = Waker(str(tmp_path / "ork.db")), Waker(str(tmp_path / "ork.db"))
    listener = lazy.listen()
    for _ in range(2000):
        busy.wake_others()
    assert drain(listener)
    assert len(os.listdir(lazy.folder)) == 1
    listener.close()


def test_a_lost_datagram_costs_time_and_not_the_news(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ork.state.sqlite.wake.LOOK_SECONDS", 0.02)

    async def scene() -> bool:
        here, there = SqliteStore(tmp_path / "ork.db"), SqliteStore(tmp_path / "ork.db")
        assert not await here.wait_for_change(0)
        for name in os.listdir(tmp_path / "wake"):
            os.unlink(tmp_path / "wake" / name)
        waiting = asyncio.ensure_future(here.wait_for_change(None))
        await deploy(there)
        woken = await asyncio.wait_for(waiting, 60)
        await here.close()
        await there.close()
        return woken

    assert asyncio.run(scene())


def test_waiting_runs_no_statement_while_nothing_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ork.state.sqlite.wake.LOOK_SECONDS", 0.001)
    monkeypatch.setattr("ork.state.sqlite.wake._CLOCK_GRAIN_NS", 0)
    looks: list[object] = []

    async def scene() -> tuple[int, int]:
        store = SqliteStore(tmp_path / "ork.db")
        await store.wait_for_change(0)
        before = store.statements
        assert store._listener is not None
        look = store._listener._log_moved
        monkeypatch.setattr(store._listener, "_log_moved", lambda: looks.append(None) or look())
        assert not await store.wait_for_change(0.1)
        after = store.statements
        await store.close()
        return before, after

    before, after = asyncio.run(scene())
    assert after == before
    assert len(looks) > 5


def test_a_write_within_the_grain_of_the_files_clock_is_looked_at_again(tmp_path: Path, monkeypatch) -> None:
    """The log's time need not move when two writes come close together, so a fresh time is not believed."""
    monkeypatch.setattr("ork.state.sqlite.wake.LOOK_SECONDS", 0.0)

    async def scene() -> None:
        store = SqliteStore(tmp_path / "ork.db")
        await deploy(store)
        await store.wait_for_change(0)
        before = store.statements
        await store.wait_for_change(0)
        assert store.statements > before
        long_ago = 1_000_000_000
        os.utime(tmp_path / "ork.db-wal", ns=(long_ago, long_ago))
        await store.wait_for_change(0)
        settled = store.statements
        await store.wait_for_change(0)
        assert store.statements == settled
        await store.close()

    asyncio.run(scene())

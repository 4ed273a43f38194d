"""A small commit is done where it is asked for, unless something is in its way: the event loop never waits for a lock
or for the disk."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ork.model.ids import RunId
from ork.model.task import TaskStatus
from ork.state.records import ClaimedRun
from ork.state.sqlite import SqliteStore
from ork.state.sqlite import store as module
from ork.state.sqlite.connection import Durability
from ork.state.sqlite.store import SMALL
from tests.conformance.state_samples import ANN, NOW, changes, deploy, owned_run, task

MANY = tuple(f"t{n}" for n in range(SMALL + 1))


@asynccontextmanager
async def opened(path: Path, durability: Durability = "normal") -> AsyncIterator[SqliteStore]:
    store = SqliteStore(path / "ork.db", durability=durability)
    try:
        yield store
    finally:
        await store.close()


async def threads_of_a_commit(store: SqliteStore, claimed: ClaimedRun, tasks: int = 1) -> set[int]:
    seen: set[int] = set()
    raw = store._db.connection._raw
    raw.set_trace_callback(lambda _statement: seen.add(threading.get_ident()))
    rows = tuple(task(spec.name, TaskStatus.CANCELLED) for spec in claimed.version.workflow.tasks[:tasks])
    await store.commit(ANN, [changes(claimed, tasks=rows)], NOW)
    raw.set_trace_callback(None)
    return seen


async def status_of_first(store: SqliteStore, run: RunId) -> TaskStatus:
    update = await store.run_updates(run)
    assert update is not None
    return update.tasks[0].status


def test_a_small_commit_runs_in_the_callers_thread_and_a_large_one_does_not(tmp_path: Path) -> None:
    async def run() -> None:
        async with opened(tmp_path) as store:
            claimed = await owned_run(store, of=await deploy(store, tasks=MANY))
            assert await threads_of_a_commit(store, claimed) == {threading.get_ident()}
            assert threading.get_ident() not in await threads_of_a_commit(store, claimed, tasks=len(MANY))
            assert await threads_of_a_commit(store, claimed) == {threading.get_ident()}

    asyncio.run(run())


def test_what_must_reach_the_disk_never_runs_in_the_callers_thread(tmp_path: Path) -> None:
    async def run() -> None:
        async with opened(tmp_path, "full") as store:
            assert threading.get_ident() not in await threads_of_a_commit(store, await owned_run(store))

    asyncio.run(run())


def test_the_log_is_emptied_now_and_then_by_the_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "COMMITS_PER_PAUSE", 5)

    async def run() -> None:
        async with opened(tmp_path) as store:
            claimed = await owned_run(store)
            here = [threading.get_ident() in await threads_of_a_commit(store, claimed) for _ in range(20)]
            assert here.count(False) == 4

    asyncio.run(run())


def test_a_locked_database_holds_up_the_commit_and_not_the_loop(tmp_path: Path) -> None:
    async def run() -> None:
        async with opened(tmp_path) as store:
            claimed = await owned_run(store)
            other = sqlite3.connect(tmp_path / "ork.db", isolation_level=None)
            other.execute("BEGIN IMMEDIATE")
            work = asyncio.create_task(threads_of_a_commit(store, claimed))
            began = asyncio.get_running_loop().time()
            await asyncio.sleep(0.05)
            assert asyncio.get_running_loop().time() - began < 5
            assert not work.done()
            other.execute("ROLLBACK")
            other.close()
            await work
            assert await status_of_first(store, claimed.run.id) is TaskStatus.CANCELLED

    asyncio.run(run())


def test_a_handle_that_reads_at_the_same_time_is_waited_for_beside_the_loop(tmp_path: Path) -> None:
    async def run() -> None:
        async with opened(tmp_path) as store:
            claimed = await owned_run(store)
            reading = asyncio.create_task(store._do(lambda _db: (is_reading.set(), gate_is_open.wait(60))))
            assert await asyncio.to_thread(is_reading.wait, 60)
            work = asyncio.create_task(threads_of_a_commit(store, claimed))
            await asyncio.sleep(0.02)
            assert not work.done()
            gate_is_open.set()
            await reading
            assert threading.get_ident() not in await work

    is_reading, gate_is_open = threading.Event(), threading.Event()
    asyncio.run(run())

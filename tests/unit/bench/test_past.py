"""Histories that are written by SQL, and what they cost those who work beside them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path

import pytest
from tests.postgres import fresh_database, server_or_skip
from tests.unit.bench.counting import counted_instructions, finish_run, scheduler_on

from ork.bench.drive.runs import light_task, utc_now
from ork.bench.past import Past, add_to_file, add_to_server
from ork.compile.content import make_version
from ork.model.run import RunStatus
from ork.model.task import AttemptStatus
from ork.model.workflow import CompiledWorkflow
from ork.state.records import RunFilter
from ork.state.rows import number_of, text_of
from ork.state.sqlite import SqliteStore
from ork.state.store import StateStore

VERSION = make_version(CompiledWorkflow("measured", (light_task("extract"), light_task("load", "extract"))), "/")
SIZE = 3_000
FAILED = frozenset({RunStatus.FAILED})


async def looks_like_a_history(store: StateStore) -> None:
    page = await store.list_runs(RunFilter(limit=100))
    assert len(page.runs) == 100
    assert {run.status for run in page.runs} == {RunStatus.SUCCESS, RunStatus.FAILED, RunStatus.CANCELLED}
    assert len((await store.list_runs(RunFilter(workflow="measured", limit=100))).runs) == 100
    [failed] = (await store.list_runs(RunFilter(statuses=FAILED, limit=1))).runs
    update = await store.run_updates(failed.id)
    assert update is not None
    assert [(task.key.name, task.status.value) for task in update.tasks] == [("extract", "success"), ("load", "failed")]
    assert update.tasks[1].failure is not None
    assert [attempt.status for attempt in await store.list_attempts(failed.id)] == [
        AttemptStatus.SUCCESS,
        AttemptStatus.FAILED,
    ]
    assert len(await store.list_alerts(failed.id)) == 1
    assert await store.count_unfinished() == dict.fromkeys((s for s in RunStatus if not s.is_final), 0)
    assert len(await store.prune(utc_now() - timedelta(hours=1), 50, 10)) == 50


def test_a_history_in_a_file_reads_like_one_that_happened(tmp_path: Path) -> None:
    async def read() -> None:
        store = await saved(tmp_path / "ork.db")
        add_to_file(str(tmp_path / "ork.db"), Past(VERSION, SIZE), 0, 1_000)
        add_to_file(str(tmp_path / "ork.db"), Past(VERSION, SIZE), 1_000, SIZE)
        await looks_like_a_history(store)
        await store.close()

    asyncio.run(read())


@pytest.mark.slow
def test_a_history_on_postgres_reads_like_one_that_happened() -> None:
    server_or_skip()
    from ork.state.postgres import PostgresStore

    async def read(url: str) -> None:
        store = PostgresStore(url)
        await store.save_version(VERSION, origin=None, now=utc_now())
        await add_to_server(url, Past(VERSION, SIZE), 0, 1_000)
        await add_to_server(url, Past(VERSION, SIZE), 1_000, SIZE)
        await looks_like_a_history(store)
        await store.close()

    with fresh_database() as url:
        asyncio.run(read(url))


async def saved(file: Path) -> SqliteStore:
    store = SqliteStore(str(file), inline=True)
    await store.save_version(VERSION, origin=None, now=utc_now())
    return store


def test_a_run_visits_no_more_rows_after_thousands_of_others(tmp_path: Path) -> None:
    """From its creation to its end: claims, commits and all."""

    async def instructions(history: int) -> int:
        file = tmp_path / f"{history}.db"
        await (await saved(file)).close()
        add_to_file(str(file), Past(VERSION, SIZE), 0, history)
        async with scheduler_on(file, VERSION) as (store, scheduler):
            await finish_run(store, scheduler, VERSION, "warm")
            with counted_instructions(store) as counter:
                await finish_run(store, scheduler, VERSION)
            return counter.number

    few, many = (asyncio.run(instructions(history)) for history in (20, SIZE))
    assert many <= few * 1.1


async def last_changes(store: StateStore) -> object:
    return await store.changes_since(text_of(number_of((await store.changes_since(None)).mark) - 10))


LOOKS: dict[str, Callable[[StateStore], Awaitable[object]]] = {
    "all runs": lambda store: store.list_runs(RunFilter(limit=20)),
    "runs of a workflow": lambda store: store.list_runs(RunFilter(workflow="measured", limit=20)),
    "failed runs": lambda store: store.list_runs(RunFilter(statuses=FAILED, limit=20)),
    "ids that begin with": lambda store: store.find_runs("h00", 10),
    "what changed lately": lambda store: last_changes(store),
    "what is unfinished": lambda store: store.count_unfinished(),
    "what to forget": lambda store: store.prune(utc_now() - timedelta(hours=1), 5, 0),
}


@pytest.mark.parametrize("name", LOOKS)
def test_a_look_costs_what_it_shows(name: str, tmp_path: Path) -> None:
    async def instructions(history: int) -> int:
        file = tmp_path / f"{history}.db"
        store = await saved(file)
        add_to_file(str(file), Past(VERSION, SIZE), 0, history)
        with counted_instructions(store) as counter:
            await LOOKS[name](store)
        await store.close()
        return counter.number

    few, many = (asyncio.run(instructions(history)) for history in (200, SIZE))
    assert many <= few * 2  # a page is a page; at fifteen times the rows, walking over them would show

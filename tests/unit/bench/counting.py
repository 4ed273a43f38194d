"""Work that can be counted: it is the same on every machine and in every mood of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from ork.bench.drive.runs import SHAPES, utc_now
from ork.bench.drive.watcher import instant_scheduler
from ork.compile.content import make_version
from ork.model.ids import RunId
from ork.model.run import NewRun
from ork.model.workflow import CompiledWorkflow, Version
from ork.scheduler.step import Scheduler
from ork.state.sqlite import SqliteStore
from ork.telemetry import TelemetryEvent


class Work(NamedTuple):
    """What a run took: steps of the scheduler and statements of its store."""

    steps: int
    statements: int


class Counter:
    """How often something happened while it was counted."""

    number = 0


@contextmanager
def counted_instructions(store: SqliteStore) -> Iterator[Counter]:
    """Instructions of SQLite's own machine: they grow with the rows a statement visits."""
    counter, raw = Counter(), store._db.connection._raw

    def note() -> None:
        counter.number += 1

    raw.set_progress_handler(note, 1)
    try:
        yield counter
    finally:
        raw.set_progress_handler(None, 0)


def workflow(shape: str, count: int) -> Version:
    return make_version(CompiledWorkflow(shape, SHAPES[shape](count)), "/")


@asynccontextmanager
async def scheduler_on(file: Path, version: Version) -> AsyncIterator[tuple[SqliteStore, Scheduler]]:
    """A scheduler that has begun and has nothing to do; its store never yields, so every step is the same each time."""
    store = SqliteStore(str(file), inline=True)
    try:
        await store.set_limits({})
        await store.save_version(version, origin=None, now=utc_now())
        scheduler = instant_scheduler(store)
        await scheduler.step(utc_now())
        yield store, scheduler
        await scheduler.stop()
    finally:
        await store.close()


async def finish_run(store: SqliteStore, scheduler: Scheduler, version: Version, name: str = "r1") -> int:
    """One run to its end; how many steps it took."""
    ended: list[Any] = []
    scheduler.telemetry.listen(lambda event, _: ended.append(event), TelemetryEvent.RUN_FINISHED)
    await store.create_runs([NewRun(RunId(name), version.workflow.name, version.id)], utc_now())
    scheduler.wake()
    steps = 0
    while not ended:
        await scheduler.step(utc_now())
        await asyncio.sleep(0)
        steps += 1
    return steps


def work_of(shape: str, count: int, folder: Path) -> Work:
    """A run of so many tasks, from its creation to its end."""

    async def run() -> Work:
        version = workflow(shape, count)
        async with scheduler_on(folder / f"{shape}-{count}.db", version) as (store, scheduler):
            before = store.statements
            steps = await finish_run(store, scheduler, version)
            return Work(steps, store.statements - before)

    return asyncio.run(run())


def per_task(work: Callable[[int], Work], small: int, large: int) -> tuple[float, float]:
    """Steps and statements of each further task: what a run costs once cancels out."""
    less, more = work(small), work(large)
    steps, statements = ((after - before) / (large - small) for before, after in zip(less, more, strict=True))
    return steps, statements

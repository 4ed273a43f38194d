"""Reads of a run with 100,000 tasks: their size, and how long they hold the event loop, which the scheduler shares."""

from __future__ import annotations

import asyncio
import gc
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest

from ork.api.routing import PREFIX
from ork.compile.content import make_version
from ork.model.access import Role
from ork.model.ids import RunId, TaskKey
from ork.model.record import replaced
from ork.model.run import CommandKind, NewRun, RunCommand, RunStatus
from ork.model.task import Task, TaskStatus
from ork.model.workflow import CompiledWorkflow, Schedule
from ork.state.records import RunChanges, RunFilter
from ork.state.store import StateStore
from tests.unit.api.conftest import ANN, NOW, Bench, workflow
from tests.unit.api.test_run_reads import BOTH, at, ended, failed_run, spec, with_store

pytestmark = pytest.mark.slow

INSTANCES = 100_000
LONGEST_HOLD = 0.05


class Holds:
    """The longest time for which one callback used the event loop's thread, in seconds of its processor."""

    longest = 0.0


@contextmanager
def holds_measured(monkeypatch: pytest.MonkeyPatch) -> Iterator[Holds]:
    holds, run = Holds(), asyncio.Handle._run

    def measured(handle: asyncio.Handle) -> None:
        start = time.thread_time()
        run(handle)
        holds.longest = max(holds.longest, time.thread_time() - start)

    gc.collect()
    gc.freeze()  # otherwise a collection goes through all that the tests before have left in this process
    try:
        with monkeypatch.context() as patched:
            patched.setattr(asyncio.Handle, "_run", measured)
            yield holds
    finally:
        gc.unfreeze()


async def widen(store: StateStore) -> None:
    """Gives the sample run 100,000 instances, as a retry of it would write them."""
    await store.register(ANN, "identity", "scheduler", NOW)
    run = await failed_run(store)
    await store.submit_command(RunCommand(run.id, CommandKind.RETRY, "me"), NOW)
    (claimed,) = (await store.claim_runs(ANN, 10, NOW)).runs
    for first in range(3, INSTANCES, 10_000):
        rows = tuple(
            ended("load", index, 12 + index / 37, 13 + index / 31)
            for index in range(first, min(first + 10_000, INSTANCES))
        )
        await store.commit(ANN, [RunChanges(run.id, claimed.epoch, tasks=rows)], NOW)
    row = replaced(claimed.run, status=RunStatus.FAILED, finished_at=at(5000))
    group = Task(
        TaskKey("load"), TaskStatus.FAILED, "process", instances=INSTANCES, started_at=at(12), finished_at=at(9)
    )
    await store.commit(ANN, [RunChanges(run.id, claimed.epoch, row, (group,), release_ownership=True)], NOW)


@BOTH
async def test_a_large_run_holds_nobody_up(bench: Bench, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with with_store(bench, kind) as used, await used.client(Role.VIEWER) as client:
        await widen(used.store)
        client.event_hooks = {"response": []}  # checking the response takes longer than making it
        await client.get(f"{PREFIX}/runs/@last/why")  # imports are done
        for path, most_bytes in (("summary", 3000), ("graph", 1000), ("columns", 1_000_000)):
            with holds_measured(monkeypatch) as holds:
                start, cpu = time.monotonic(), time.process_time()
                async with client.stream("GET", f"{PREFIX}/runs/@last/{path}") as response:
                    sent = b"".join([piece async for piece in response.aiter_raw()])
                seconds, cpu = time.monotonic() - start, time.process_time() - cpu
            print(
                f"{kind} {path}: {seconds:.2f} s, {cpu:.2f} s of CPU, {len(sent):,} bytes, hold {holds.longest * 1000:.1f} ms"
            )
            assert response.status_code == 200
            assert len(sent) < most_bytes
            assert holds.longest < LONGEST_HOLD


TASKS = 20_000
MOST_CPU = 12
"""CPU of the columns of a run, over that of writing as many numbers as JSON."""


def json_seconds() -> float:
    """CPU seconds for as many numbers as the columns of the large run have."""
    numbers = [list(range(first, INSTANCES + first)) for first in range(7)]
    start = time.process_time()
    for column in numbers:
        json.dumps(column)
    return time.process_time() - start


async def test_columns_cost_little_more_than_their_numbers(bench: Bench) -> None:
    async with await bench.client(Role.VIEWER) as client:
        await widen(bench.store)
        client.event_hooks = {"response": []}
        floors, costs = [], []
        for _ in range(3):
            floors.append(json_seconds())
            start = time.process_time()
            response = await client.get(f"{PREFIX}/runs/@last/columns")
            costs.append(time.process_time() - start)
            assert response.status_code == 200
        print(f"{min(costs):.2f} s of CPU, floor {min(floors):.3f} s")
        assert min(costs) < MOST_CPU * min(floors)


async def deepen(store: StateStore) -> None:
    """A run of 20,000 tasks that has ended."""
    specs = [spec(f"t{number}", *([f"t{number - 1}"] if number % 100 else [])) for number in range(TASKS)]
    version = make_version(CompiledWorkflow("deep", tuple(specs)), "/project", "deep.yaml")
    await store.save_version(version, origin=None, now=NOW)
    (run,) = await store.create_runs([NewRun(RunId("00000000000d"), "deep", version.id, {})], NOW)
    await store.register(ANN, "identity", "scheduler", NOW)
    (claimed,) = (await store.claim_runs(ANN, 10, NOW)).runs
    rows = tuple(ended(each.name, None, 2 + place / 10, 4 + place / 10) for place, each in enumerate(specs))
    row = replaced(claimed.run, status=RunStatus.SUCCESS, started_at=NOW, finished_at=at(5000))
    await store.commit(ANN, [RunChanges(run.id, claimed.epoch, row, rows, release_ownership=True)], NOW)


async def test_a_run_of_many_tasks_holds_nobody_up(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    async with await bench.client(Role.VIEWER) as client:
        await deepen(bench.store)
        client.event_hooks = {"response": []}
        await client.get(f"{PREFIX}/runs/@last/why")  # imports are done
        for path in ("summary", "graph", "columns", "why?task=t19999", "why"):
            with holds_measured(monkeypatch) as holds:
                async with client.stream("GET", f"{PREFIX}/runs/@last/{path}") as response:
                    sent = b"".join([piece async for piece in response.aiter_raw()])
            print(f"{path}: {len(sent):,} bytes, hold {holds.longest * 1000:.1f} ms")
            assert response.status_code == 200
            assert holds.longest < LONGEST_HOLD, path


PAGES = (
    "runs?limit=100&counts=true",
    "runs?q=fan&trigger=manual&counts=true",
    "runs?param=day:mon",
    "runs/@last/diff/00000000000e",
    "runs/00000000000e/previous-success",
    "runs/@last/tasks/extract/output?preview=200",
    "runs/@last/why",
    "runs/@last/why?task=load",
    "workflows/fan/params",
    "calendar?from=2026-02-15T00:00:00Z&to=2026-04-01T00:00:00Z",
)


RUNNING = "runs/00000000000f/why"


async def go_on(store: StateStore) -> None:
    """The large run is retried, and runs. Reading all pages may have taken longer than a lease."""
    await store.register(ANN, "identity", "scheduler", NOW)
    await store.submit_command(RunCommand(RunId("00000000000f"), CommandKind.RETRY, "me"), NOW)
    claimed = next(each for each in (await store.claim_runs(ANN, 5000, NOW)).runs if each.run.id == "00000000000f")
    row = replaced(claimed.run, status=RunStatus.RUNNING, finished_at=None)
    tasks = tuple(replaced(task, status=TaskStatus.RUNNING, finished_at=None) for task in claimed.tasks[-50_000:-1])
    group = Task(TaskKey("load"), TaskStatus.RUNNING, "process", instances=INSTANCES, started_at=at(12))
    await store.commit(ANN, [RunChanges(row.id, claimed.epoch, row, (group, *tasks))], NOW)


@BOTH
async def test_reads_for_pages_hold_nobody_up(bench: Bench, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside a run of 100,000 instances, 2000 other runs, and a schedule of every minute."""
    async with with_store(bench, kind) as used, await used.client(Role.VIEWER) as client:
        await widen(used.store)
        await beside(used.store)
        client.event_hooks = {"response": []}
        for path in (*PAGES, RUNNING):
            if path == RUNNING:
                await go_on(used.store)
            await client.get(f"{PREFIX}/{path}")  # imports are done
            with holds_measured(monkeypatch) as holds:
                start = time.monotonic()
                response = await client.get(f"{PREFIX}/{path}")
                seconds = time.monotonic() - start
            size = len(response.content)
            print(f"{kind} {path}: {seconds:.2f} s, {size:,} bytes, hold {holds.longest * 1000:.1f} ms")
            assert response.status_code == 200, response.text
            assert size < 2_000_000
            assert holds.longest < LONGEST_HOLD, path


async def beside(store: StateStore) -> None:
    """Adds a run of the same workflow, many of another one, and a schedule of every minute."""
    version = workflow("minutely", schedule=Schedule("* * * * *"))
    await store.save_version(version, origin=None, now=NOW, next_fire=NOW)
    (fan,) = (await store.list_runs(RunFilter(workflow="fan"))).runs
    await store.create_runs([NewRun(RunId("00000000000e"), "fan", fan.version, {})], NOW - timedelta(hours=1))
    for first in range(0, 2000, 100):
        new = [NewRun(RunId(f"{n:012d}"), "minutely", version.id, {"day": "tue"}) for n in range(first, first + 100)]
        await store.create_runs(new, NOW - timedelta(hours=2))

"""Measures the same runs and reads alternately in a store with a long history and in an empty one."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

from ork.app.installation import Installation, open_installation
from ork.bench.drive.runs import light_task, measured, utc_now
from ork.bench.drive.watcher import SchedulerWatcher, instant_service
from ork.bench.past import Past, add_to_file, add_to_server
from ork.compile.content import make_version
from ork.model.ids import RunId
from ork.model.run import NewRun, RunStatus
from ork.model.workflow import CompiledWorkflow, Version
from ork.settings import load_settings
from ork.state.records import RunFilter
from ork.state.store import StateStore
from ork.status.run_search import RunSearch, search_runs

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

TURNS = 15
LOOKS = 9
PRUNED_AT_ONCE = 50
PARTS = {"claim_ms": "read", "commit_ms": "commit", "step_ms": "step"}

Costs = dict[str, float]


async def drive_history(filled: str, empty: str, sizes: Sequence[int]) -> dict[str, Any]:
    """For each size, the cost of a run with that many finished runs in the store, and without any."""
    begin, found, before = perf_counter(), [], 0
    version = make_version(
        CompiledWorkflow("measured", (light_task("extract"), light_task("load", "extract"))), os.getcwd()
    )
    for url in (filled, empty):
        await save(url, version)
    for size in sizes:
        loading = perf_counter()
        await add_runs(filled, Past(version, max(sizes)), before, size)
        loaded = perf_counter() - loading
        found.append({"size": size, "load_s": loaded, **await compared(filled, empty, version)})
        before = size
    return measured(perf_counter() - begin, 0, []) | {"sizes": found}


async def save(url: str, version: Version) -> None:
    installation = await open_installation(load_settings(store=url))
    await installation.store.save_version(version, origin=None, now=utc_now())
    await installation.close()


async def add_runs(url: str, past: Past, first: int, last: int) -> None:
    if first < last and url.startswith("sqlite:"):
        add_to_file(url.removeprefix("sqlite:"), past, first, last)
    elif first < last:
        await add_to_server(url, past, first, last)


async def compared(filled: str, empty: str, version: Version) -> dict[str, Any]:
    async with scheduler(filled) as full, scheduler(empty) as bare:
        mark = (await full.store.changes_since(None)).mark
        turns = [(await cost_of_run(full, version), await cost_of_run(bare, version)) for _ in range(TURNS)]
        looks = await cost_of_looks(full.store, version.workflow.name, mark)
    pairs = {name: [(with_past[name], without[name]) for with_past, without in turns] for name in turns[0][0]}
    return {
        "runs_ms": [with_past["run_ms"] for with_past, _ in turns],
        "filled": {name: median(one for one, _ in values) for name, values in pairs.items()} | looks,
        "empty": {name: median(one for _, one in values) for name, values in pairs.items()},
        "ratios": {name: median(one / other for one, other in values) for name, values in pairs.items()},
    }


class AtWork:
    """A store and the scheduler on it."""

    def __init__(self, installation: Installation) -> None:
        self.store = installation.store
        self.service = instant_service(installation.store)
        self.watcher = SchedulerWatcher(self.service)

    def spent(self) -> dict[str, tuple[float, int]]:
        return {part: (spent.seconds, spent.count) for part, spent in self.service.telemetry.spent.items()}


@asynccontextmanager
async def scheduler(url: str) -> AsyncIterator[AtWork]:
    installation = await open_installation(load_settings(store=url))
    work = AtWork(installation)
    await work.watcher.ready()
    try:
        yield work
    finally:
        await work.watcher.stop()
        await installation.close()


async def cost_of_run(work: AtWork, version: Version) -> Costs:
    """Milliseconds of one run of two tasks, and the average of its steps and their parts."""
    before, begin = work.spent(), perf_counter()
    await work.store.create_runs(
        [NewRun(RunId(f"b{os.urandom(6).hex()}"), version.workflow.name, version.id)], utc_now()
    )
    work.service.wake()
    await work.watcher.finished()
    seconds, after = perf_counter() - begin, work.spent()
    return {"run_ms": seconds * 1000} | {name: mean_ms(before, after, part) for name, part in PARTS.items()}


def mean_ms(before: dict[str, tuple[float, int]], after: dict[str, tuple[float, int]], part: str) -> float:
    (seconds, count), (past_seconds, past_count) = after[part], before.get(part, (0.0, 0))
    return (seconds - past_seconds) / max(1, count - past_count) * 1000


async def cost_of_looks(store: StateStore, workflow: str, mark: str) -> Costs:
    """Milliseconds of common reads (`mark`: the changes after it), and of pruning fifty runs."""
    page = await store.list_runs(RunFilter(limit=20))
    long_ago = utc_now() - timedelta(days=3650)
    looks: dict[str, Callable[[], Awaitable[object]]] = {
        "list_ms": lambda: store.list_runs(RunFilter(limit=20)),
        "next_page_ms": lambda: store.list_runs(RunFilter(limit=20, cursor=page.cursor)),
        "list_of_workflow_ms": lambda: store.list_runs(RunFilter(workflow=workflow, limit=20)),
        "list_failed_ms": lambda: store.list_runs(RunFilter(statuses=frozenset({RunStatus.FAILED}), limit=20)),
        "search_params_ms": lambda: search_runs(store, RunSearch(RunFilter(limit=20), param=("day", "1970-01-01"))),
        "find_ms": lambda: store.find_runs("h0", 10),
        "changes_ms": lambda: store.changes_since(mark),
        "unfinished_ms": lambda: store.count_unfinished(),
        "nothing_to_prune_ms": lambda: store.prune(long_ago, PRUNED_AT_ONCE, 10),
        "prune_ms": lambda: store.prune(utc_now() - timedelta(minutes=5), PRUNED_AT_ONCE, 10),
    }
    return {name: await median_ms(look) for name, look in looks.items()}


async def median_ms(look: Callable[[], Awaitable[object]]) -> float:
    times = []
    for _ in range(LOOKS):
        begin = perf_counter()
        await look()
        times.append(perf_counter() - begin)
    return median(times) * 1000

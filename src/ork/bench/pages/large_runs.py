"""Very large runs in the store of a project, written as a scheduler would have written them."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from ork.bench.past import Past, add_to_file
from ork.compile.content import make_version
from ork.model.ids import AttemptKey, RunId, SchedulerId, TaskKey
from ork.model.record import replaced
from ork.model.run import NewRun, RunStatus
from ork.model.task import Attempt, AttemptStatus, Failure, FailureKind, Task, TaskStatus
from ork.model.workflow import Command, CompiledWorkflow, Const, TaskSpec, Version
from ork.objects.layout import attempt_stem, log_key
from ork.state.records import RunChanges
from ork.state.sqlite import SqliteStore

BEGIN = datetime(2026, 11, 1, 2, 0, tzinfo=UTC)
SEEDER = SchedulerId("seeder")
LOG_TASK = "tell"
_LINES_AT_ONCE = 20_000

T = TypeVar("T")


def add_history(folder: Path, runs: int) -> None:
    """Ended runs of 42 workflows, twenty seconds apart; the newest ended just now."""
    version = _version("measured", [_spec("extract"), _spec("load", "extract")])
    _in_thread(_save(folder, version))
    add_to_file(str(_database(folder)), Past(version, runs), 0, runs)


def add_wide_run(folder: Path, instances: int) -> str:
    """A run of one fan-out; every thousandth instance failed. Returns its id."""
    version = _version("wide", [_spec("split"), _spec("load", "split"), _spec("merge", "load")])
    load = Task(
        TaskKey("load"), TaskStatus.FAILED, "python", instances=instances, started_at=_at(6), finished_at=_at(2000)
    )
    rows = [
        _ended("split", None, 1, 5),
        load,
        *(
            _ended("load", index, 6 + index / 60, 8 + index / 55, failed=index % 1000 == 417)
            for index in range(instances)
        ),
        Task(TaskKey("merge"), TaskStatus.SKIPPED, "python"),
    ]
    return _in_thread(_add_run(folder, version, rows, RunStatus.FAILED))


def add_deep_run(folder: Path, tasks: int, columns: int = 70) -> str:
    """A run of many tasks, each of which depends on two of the layer before; a few failed. Returns its id."""
    specs, rows = [], []
    for number in range(tasks):
        layer, place = divmod(number, columns)
        before = [] if layer == 0 else sorted({number - columns, (layer - 1) * columns + (place + 7) % columns})
        specs.append(_spec(f"task_{number:05}", *(f"task_{each:05}" for each in before)))
        start = 2.0 * layer + place / 50
        rows.append(_ended(specs[-1].name, None, start, start + 1.5 + place % 5 / 10, failed=number == tasks - 3))
    return _in_thread(_add_run(folder, _version("deep", specs), rows, RunStatus.FAILED))


def add_log_run(folder: Path, megabytes: int) -> tuple[str, int]:
    """A run of one task with a long, coloured log. Returns its id and the number of lines."""
    version = _version("log", [_spec(LOG_TASK)])
    run = _in_thread(_add_run(folder, version, [_ended(LOG_TASK, None, 1, 5)], RunStatus.SUCCESS, with_attempts=True))
    stem = attempt_stem(AttemptKey(RunId(run), TaskKey(LOG_TASK), 1))
    path = folder / ".ork" / "objects" / log_key(stem)
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = size = 0
    with path.open("wb") as file:
        while size < megabytes << 20:
            text = "".join(map(_line, range(lines + 1, lines + 1 + _LINES_AT_ONCE))).encode()
            size += file.write(text)
            lines += _LINES_AT_ONCE
    return run, lines


def _line(number: int) -> str:
    if number % 50_000 == 0:
        return f"\x1b[31mERROR\x1b[0m 503 Service Unavailable, batch {number}\n"
    worker = f"\x1b[36mworker-{number % 8}\x1b[0m"
    return f"2026-11-01T02:00:{number % 60:02} {worker} \x1b[32mINFO\x1b[0m processed batch {number} of the day, 128 rows\n"


def _database(folder: Path) -> Path:
    (folder / ".ork").mkdir(mode=0o700, exist_ok=True)
    return folder / ".ork" / "ork.db"


def _in_thread(work: Coroutine[Any, Any, T]) -> T:
    """Runs it to its end. Playwright may run an event loop in the calling thread."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


def _version(name: str, specs: Sequence[TaskSpec]) -> Version:
    return make_version(CompiledWorkflow(name, tuple(specs)), "/project", f"{name}.yaml")


def _spec(name: str, *upstream: str) -> TaskSpec:
    return TaskSpec(name, "process", Command((Const("true"),)), depends_on=upstream)


def _at(seconds: float) -> datetime:
    return BEGIN + timedelta(seconds=seconds)


def _ended(name: str, index: int | None, start: float, end: float, *, failed: bool = False) -> Task:
    failure = Failure(FailureKind.EXCEPTION, f"HTTPError: 503 from api.example.com, part {index}") if failed else None
    return Task(
        TaskKey(name, index), TaskStatus.FAILED if failed else TaskStatus.SUCCESS, "process", attempt=1, failure=failure,
        dispatched_at=_at(start - 0.5), started_at=_at(start), finished_at=_at(end),
    )  # fmt: skip


async def _save(folder: Path, version: Version) -> None:
    store = SqliteStore(_database(folder))
    await store.save_version(version, origin=None, now=BEGIN)
    await store.close()


async def _add_run(
    folder: Path, version: Version, rows: Sequence[Task], status: RunStatus, *, with_attempts: bool = False
) -> str:
    store = SqliteStore(_database(folder))
    try:
        await store.save_version(version, origin=None, now=BEGIN)
        (run,) = await store.create_runs(
            [NewRun(RunId(f"{len(rows):012}"), version.workflow.name, version.id, {})], BEGIN
        )
        await store.register(SEEDER, "seeder", "scheduler", BEGIN)
        claimed = next(each for each in (await store.claim_runs(SEEDER, 100, BEGIN)).runs if each.run.id == run.id)
        for first in range(0, len(rows), 10_000):
            part = tuple(rows[first : first + 10_000])
            attempts = tuple(_attempt(run.id, row) for row in part) if with_attempts else ()
            await store.commit(SEEDER, [RunChanges(run.id, claimed.epoch, None, part, attempts)], BEGIN)
        end = max(row.finished_at for row in rows if row.finished_at is not None)
        row = replaced(claimed.run, status=status, started_at=BEGIN, finished_at=end)
        await store.commit(SEEDER, [RunChanges(run.id, claimed.epoch, row, (), release_ownership=True)], BEGIN)
        return str(run.id)
    finally:
        await store.close()


def _attempt(run: RunId, task: Task) -> Attempt:
    return Attempt(
        AttemptKey(run, task.key, task.attempt), AttemptStatus(task.status.value), task.executor, "seeded", "", BEGIN,
        started_at=task.started_at, finished_at=task.finished_at, exit_code=0,
    )  # fmt: skip

"""Projects with a history, for pages to show: failures, retries, fan-outs, waiting approvals, and very large runs."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from ork.bench.past import Past, add_to_file
from ork.compile.content import make_version
from ork.model.ids import RunId, SchedulerId, TaskKey
from ork.model.record import replaced
from ork.model.run import NewRun, RunStatus
from ork.model.task import Failure, FailureKind, Task, TaskStatus
from ork.model.workflow import Command, CompiledWorkflow, Const, TaskSpec, Version
from ork.state.records import RunChanges
from ork.state.sqlite import SqliteStore

TASKS = '''"""Plain functions of a shop's pipelines."""


class HTTPError(Exception):
    """What an API answers when it is unwell."""


def extract(day: str, region: str = "eu"):
    for page in range(12):
        print(f"INFO GET /v2/orders?day={day}&region={region}&page={page}")
    return {"rows": 4812, "parts": list(range(24))}


def load(item: int, broken: list):
    print(f"INFO GET /v2/part/{item}")
    if item in broken:
        print("ERROR 503 after 30.0s")
        raise HTTPError(f"503 Service Unavailable from api.example.com, part {item}")
    print(f"INFO loaded {item * 31 % 97} rows")
    return {"part": item, "rows": item * 31 % 97}


def publish(load: list):
    print("\\x1b[32mINFO\\x1b[0m published")
    return [{"part": each["part"], "rows": each["rows"], "share": each["rows"] / 97} for each in load]
'''
FLOWS = {
    "my_etl": """
name: my_etl
description: Loads the orders of a day
params:
  day: {type: date, default: 2026-11-17, description: which day to load}
  region: {type: '"eu" | "us" | "asia"', default: eu}
  limit: {type: int, default: 1000}
  dry_run: {type: bool, default: false}
  broken: {type: "list[int]", default: [], description: parts that the API does not deliver}
tasks:
  extract: {file: tasks.py, function: extract, inputs: {day: {ref: params.day}, region: {ref: params.region}}}
  load: {file: tasks.py, function: load, foreach: extract.parts, inputs: {broken: {ref: params.broken}}, concurrency: 8, pool: api}
  publish: {file: tasks.py, function: publish, depends_on: [load]}
  tidy: {command: [sh, -c, 'echo tidied up'], depends_on: [publish], run_if: all_done}
""",
    "billing": """
name: billing
tasks:
  invoices: {command: [sh, -c, 'echo 48 invoices; echo "{\\"invoices\\": 48}" > /dev/null']}
  publish: {command: [sh, -c, 'echo uploading; kill -9 $$'], depends_on: [invoices], retries: 1, retry_delay: 100ms}
""",
    "reports": """
name: reports
schedule: {cron: "0 2 * * *", timezone: Europe/Berlin, catchup: none}
tasks:
  collect: {command: [sh, -c, 'echo collecting']}
  send: {command: [sh, -c, 'echo sending'], depends_on: [collect]}
""",
    "release": """
name: release
tasks:
  build: {command: [sh, -c, 'echo built version 1.4']}
  approve: {approval: {message: 'Publish version 1.4?', timeout: 7d}, depends_on: [build]}
  publish: {command: [sh, -c, 'echo published'], depends_on: [approve]}
""",
    "nightly": """
name: nightly
tasks:
  wait: {command: [sh, -c, 'echo waiting for the file go; until [ -e go ]; do sleep 0.2; done'], pool: api}
  after: {command: 'true', depends_on: [wait]}
""",
    "hostile": """
name: hostile
description: "<img src=x onerror=globalThis.pwned=1> \\u202e"
params: {text: "<script>globalThis.pwned=1</script>"}
tasks:
  a:
    command: [sh, -c, 'printf "%b" "$0"; exit 3', {ref: params.text}]
""",
}
QUIET = ("customers", "inventory", "prices", "ratings", "search_index")
BEGIN = datetime(2026, 11, 1, 2, 0, tzinfo=UTC)
SEEDER = SchedulerId("seeder")

T = TypeVar("T")


def write_project(folder: Path) -> None:
    (folder / "ork.yaml").write_text("pools: {api: 4}\n")
    (folder / "tasks.py").write_text(TASKS)
    for name, text in FLOWS.items():
        (folder / f"{name}.yaml").write_text(text)
    for name in QUIET:
        (folder / f"{name}.yaml").write_text(f"name: {name}\ntasks:\n  refresh: {{command: [sh, -c, 'echo done']}}\n")


def fill(folder: Path, environment: Mapping[str, str], *, is_hostile: bool = True) -> None:
    """Runs of every kind: successes, failures of one and of many instances, one that waits for a person. With `is_hostile`, also
    one whose texts are meant for a browser to run."""
    write_project(folder)
    flows = [name for name in FLOWS if is_hostile or name != "hostile"]
    ork(folder, environment, "deploy", *(f"{name}.yaml" for name in (*flows, *QUIET)))
    for name in QUIET:
        ork(folder, environment, "run", f"{name}.yaml")
    for broken in ([], [], [7], [], [3, 4, 11, 17]):
        ork(folder, environment, "run", "my_etl.yaml", "-p", f"broken={broken}", exits=(1,) if broken else (0,))
    ork(folder, environment, "run", "billing.yaml", exits=(1,))
    ork(folder, environment, "run", "reports.yaml")
    ork(folder, environment, "run", "release.yaml", exits=(5,))
    if is_hostile:
        ork(folder, environment, "run", "hostile.yaml", exits=(1,))


# ── very large runs, written as a scheduler would have written them ──────────────────────────────


def add_history(folder: Path, runs: int) -> None:
    """Ended runs of 42 workflows, twenty seconds apart; the newest ended just now."""
    version = _version("measured", [_spec("extract"), _spec("load", "extract")])
    _in_thread(_save(folder, version))
    add_to_file(str(folder / ".ork" / "ork.db"), Past(version, runs), 0, runs)


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
    store = SqliteStore(folder / ".ork" / "ork.db")
    await store.save_version(version, origin=None, now=BEGIN)
    await store.close()


async def _add_run(folder: Path, version: Version, rows: Sequence[Task], status: RunStatus) -> str:
    store = SqliteStore(folder / ".ork" / "ork.db")
    try:
        await store.save_version(version, origin=None, now=BEGIN)
        (run,) = await store.create_runs(
            [NewRun(RunId(f"{len(rows):012}"), version.workflow.name, version.id, {})], BEGIN
        )
        await store.register(SEEDER, "seeder", "scheduler", BEGIN)
        claimed = next(each for each in (await store.claim_runs(SEEDER, 100, BEGIN)).runs if each.run.id == run.id)
        for first in range(0, len(rows), 10_000):
            part = tuple(rows[first : first + 10_000])
            await store.commit(SEEDER, [RunChanges(run.id, claimed.epoch, tasks=part)], BEGIN)
        end = max(row.finished_at for row in rows if row.finished_at is not None)
        row = replaced(claimed.run, status=status, started_at=BEGIN, finished_at=end)
        await store.commit(SEEDER, [RunChanges(run.id, claimed.epoch, row, (), release_ownership=True)], BEGIN)
        return str(run.id)
    finally:
        await store.close()


def ork(folder: Path, environment: Mapping[str, str], *args: str, exits: Sequence[int] = (0,)) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "ork", *args], cwd=folder, env=dict(environment), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert done.returncode in exits, f"{args}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout

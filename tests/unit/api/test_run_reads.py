"""Reads for the pages of large runs: summary, columns and graph. They return numbers, not rows."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from ork.api.routing import PREFIX
from ork.compile.content import make_version
from ork.model.access import Role
from ork.model.ids import AttemptKey, RunId, TaskKey
from ork.model.record import replaced
from ork.model.run import NewRun, Run, RunStatus
from ork.model.task import Attempt, AttemptStatus, Failure, FailureKind, Task, TaskStatus
from ork.model.workflow import Command, CompiledWorkflow, Const, TaskSpec
from ork.state.postgres import PostgresStore
from ork.state.records import RunChanges
from ork.state.store import StateStore
from ork.status import columns
from tests.postgres import fresh_database, server_or_skip
from tests.unit.api.conftest import ANN, NOW, Bench


def spec(name: str, *upstream: str) -> TaskSpec:
    return TaskSpec(name, "process", Command((Const("true"),)), depends_on=upstream)


def ended(name: str, index: int | None, start: float, end: float, **options: Any) -> Task:
    times = {"dispatched_at": at(start - 1), "started_at": at(start), "finished_at": at(end)}
    options = {"status": TaskStatus.SUCCESS, "attempt": 1, **times, **options}
    return Task(TaskKey(name, index), executor="process", **options)


def at(seconds: float) -> Any:
    return NOW + timedelta(seconds=seconds)


async def failed_run(store: StateStore, width: int = 3) -> Run:
    """extract and a short side task, a fan-out of which one instance failed in its second attempt, and a skipped one."""
    tasks = (spec("extract"), spec("side"), spec("load", "extract", "side"), spec("publish", "load"))
    version = make_version(CompiledWorkflow("fan", tasks), "/project", "fan.yaml")
    await store.save_version(version, origin=None, now=NOW)
    (run,) = await store.create_runs([NewRun(RunId("00000000000f"), "fan", version.id, {})], NOW)
    await store.register(ANN, "identity", "scheduler", NOW)
    (claimed,) = (await store.claim_runs(ANN, 10, NOW)).runs
    failure = Failure(FailureKind.EXCEPTION, "HTTPError: 503")
    rows = (
        ended("extract", None, 2, 10),
        ended("side", None, 2, 4),
        ended("load", None, 12, 30, status=TaskStatus.FAILED, instances=width),
        *(ended("load", index, 12, 14 + index) for index in range(width - 1)),
        ended("load", width - 1, 20, 30, status=TaskStatus.FAILED, attempt=2, failure=failure),
        Task(TaskKey("publish"), TaskStatus.SKIPPED, "process"),
    )
    first = Attempt(
        AttemptKey(run.id, TaskKey("load", width - 1), 1), AttemptStatus.TIMED_OUT, "process", "n", "h", at(11),
        started_at=at(12), finished_at=at(15),
    )  # fmt: skip
    row = replaced(claimed.run, status=RunStatus.FAILED, started_at=NOW, finished_at=at(31))
    await store.commit(ANN, [RunChanges(run.id, claimed.epoch, row, rows, (first,), release_ownership=True)], NOW)
    return row


@asynccontextmanager
async def with_store(bench: Bench, kind: str) -> AsyncIterator[Bench]:
    """The API on SQLite, or on Postgres."""
    if kind == "sqlite":
        yield bench
        return
    server_or_skip()
    with fresh_database() as url:
        store = PostgresStore(url)
        api = replaced(bench.api, store=store)
        from ork.api.app import create_app

        yield Bench(bench.folder, store, bench.objects, api, create_app(api))  # type: ignore[arg-type]
        await store.close()


BOTH = pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])


@BOTH
async def test_a_summary_has_counts_failures_and_the_critical_path(bench: Bench, kind: str) -> None:
    async with with_store(bench, kind) as used, await used.client(Role.VIEWER) as client:
        run = await failed_run(used.store)
        found = (await client.get(f"{PREFIX}/runs/{run.id}/summary")).json()
        assert found["counts"] == {"success": 4, "failed": 1, "skipped": 1}
        assert found["progress"] == {"done": 6, "total": 6}
        assert found["tasks"][2] == {"name": "load", "status": "failed", "instances": {"failed": 1, "success": 2}}
        (failure,) = found["failures"]
        assert (failure["name"], failure["index"], failure["attempt"]) == ("load", 2, 2)
        assert failure["failure"]["message"] == "HTTPError: 503"
        assert [(step["name"], step["seconds"], step["waited"]) for step in found["critical_path"]] == [
            ("extract", 8.0, 2.0), ("load", 18.0, 2.0),
        ]  # fmt: skip
        assert [step["saves"] for step in found["critical_path"]] == [6.0, 18.0]
        assert found["estimate"] is None
        tag = {"If-None-Match": (await client.get(f"{PREFIX}/runs/{run.id}/summary")).headers["etag"]}
        assert (await client.get(f"{PREFIX}/runs/{run.id}/summary", headers=tag)).status_code == 304
        graph = (await client.get(f"{PREFIX}/runs/{run.id}/graph")).json()["nodes"]
        assert graph[2]["instances"] == {"failed": 1, "success": 2}
        assert [node["status"] for node in graph] == ["success", "success", "failed", "skipped"]
        assert (await client.get(f"{PREFIX}/runs/0000000zzzzz/summary")).status_code == 404


@BOTH
async def test_columns_hold_every_task_and_the_attempts_before(
    bench: Bench, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columns, "PAGE", 2)
    async with with_store(bench, kind) as used, await used.client(Role.VIEWER) as client:
        run = await failed_run(used.store)
        found = (await client.get(f"{PREFIX}/runs/{run.id}/columns")).json()
        tasks, earlier, words = found["tasks"], found["earlier"], found["statuses"]
        assert [found["names"][place] for place in tasks["task"]] == [
            "extract", "side", "load", "load", "load", "load", "publish",
        ]  # fmt: skip
        assert tasks["index"] == [None, None, None, 0, 1, 2, None]
        assert [words[status] for status in tasks["status"]][-3:] == ["success", "failed", "skipped"]
        assert tasks["attempt"] == [1, 1, 1, 1, 1, 2, 0]
        assert (tasks["queued"], tasks["wait"]) == (
            [1000, 1000, 11000, 11000, 11000, 19000, None], [1000] * 6 + [None],
        )  # fmt: skip
        assert tasks["ran"] == [8000, 2000, 18000, 2000, 3000, 10000, None]
        assert earlier == {
            "task": [2], "index": [2], "status": [words.index("timed_out")], "attempt": [1],
            "queued": [11000], "wait": [1000], "ran": [3000],
        }  # fmt: skip
        assert found["start"] == NOW.timestamp() * 1000
        later = (await client.get(f"{PREFIX}/runs/{run.id}/columns?since={found['mark']}")).json()
        assert later["tasks"]["task"] == []
        assert (await client.get(f"{PREFIX}/runs/{run.id}/columns?since=x.y")).status_code == 400
        assert (await client.get(f"{PREFIX}/runs/0000000zzzzz/columns")).status_code == 404


async def test_a_run_that_has_not_started_has_tasks_without_status(bench: Bench) -> None:
    run = await bench.run()
    async with await bench.client(Role.VIEWER) as client:
        summary = (await client.get(f"{PREFIX}/runs/{run.id}/summary")).json()
        assert summary["progress"] == {"done": 0, "total": 2}
        assert [task["status"] for task in summary["tasks"]] == [None, None]
        assert summary["critical_path"] == []
        empty = (await client.get(f"{PREFIX}/runs/{run.id}/columns")).json()
        assert empty["tasks"]["task"] == []
        assert empty["names"] == ["extract", "load"]


async def test_the_rest_is_estimated_from_the_runs_before(bench: Bench) -> None:
    version = await bench.deploy()
    ids = [RunId(f"00000000000{number}") for number in range(3)]
    await bench.store.create_runs([NewRun(id, "flow", version.id, {}) for id in ids], NOW)
    await bench.store.register(ANN, "identity", "scheduler", NOW)
    for claimed in (await bench.store.claim_runs(ANN, 10, NOW)).runs:
        is_last = claimed.run.id == ids[-1]
        status, end = (RunStatus.RUNNING, None) if is_last else (RunStatus.SUCCESS, at(60))
        row = replaced(claimed.run, status=status, started_at=NOW, finished_at=end)
        await bench.store.commit(ANN, [RunChanges(row.id, claimed.epoch, row)], NOW)
    used = Bench(bench.folder, bench.store, bench.objects, bench.api, bench.app)
    object.__setattr__(bench.api, "now", lambda: at(20))
    async with await used.client(Role.VIEWER) as client:
        summary = (await client.get(f"{PREFIX}/runs/{ids[-1]}/summary")).json()
        assert summary["estimate"] == {"seconds_left": 40.0, "median": 60.0, "runs": 2}

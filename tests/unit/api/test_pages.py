"""Every list comes in pages, however long it is."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from ork.api import views
from ork.api.paging import PAGE_BYTES
from ork.api.routing import PREFIX
from ork.model.ids import AttemptKey, RunId, SchedulerId, TaskKey
from ork.model.record import replaced
from ork.model.run import NewRun, RunStatus
from ork.model.task import Attempt, AttemptStatus, InlineOutput, Task, TaskStatus
from ork.model.workflow import Schedule
from ork.state.records import RunChanges
from tests.unit.api.conftest import NOW, Bench

MANY = 100_000


async def walk(client: httpx.AsyncClient, path: str, rows: str, **query: Any) -> list[list[Any]]:
    """The pages, followed by their cursors."""
    pages, cursor = [], None
    while True:
        given = {**query, "cursor": cursor} if cursor is not None else query
        answer = await client.get(PREFIX + path, params=given)
        assert answer.status_code == 200, answer.text
        pages.append(answer.json()[rows])
        cursor = answer.json()["cursor"]
        if cursor is None:
            return pages


async def fan_out(bench: Bench, width: int) -> str:
    """A run whose first task has this many instances, each with an attempt."""
    run, ann = await bench.run(), SchedulerId("ann")
    await bench.store.register(ann, "ann", "scheduler", NOW)
    (claimed,) = (await bench.store.claim_runs(ann, 1, NOW)).runs
    keys = [TaskKey("extract", number) for number in range(width)]
    tasks = [Task(key, TaskStatus.FAILED if key.index == 7 else TaskStatus.SUCCESS, "process", 1) for key in keys]
    tries = [Attempt(AttemptKey(run.id, key, 1), AttemptStatus.SUCCESS, "process", "x", "h", NOW) for key in keys]
    running = replaced(claimed.run, status=RunStatus.RUNNING, started_at=NOW)
    whole = (*tasks, Task(TaskKey("load"), TaskStatus.PENDING, "process"))
    await bench.store.commit(ann, [RunChanges(run.id, claimed.epoch, running, whole, tuple(tries))], NOW)
    return run.id


async def test_tasks_and_attempts_are_paged_filtered_and_complete(bench: Bench) -> None:
    run = await fan_out(bench, 10)
    async with await bench.client() as client:
        pages = await walk(client, f"/runs/{run}/tasks", "tasks", limit=4)
        assert [len(page) for page in pages] == [4, 4, 3]
        assert [(row["name"], row["index"]) for page in pages for row in page] == [
            *(("extract", number) for number in range(10)), ("load", None)
        ]  # fmt: skip
        assert [len(page) for page in await walk(client, f"/runs/{run}/attempts", "attempts", limit=4)] == [4, 4, 2]
        ((failed,),) = await walk(client, f"/runs/{run}/tasks", "tasks", status=["failed", "cancelled"])
        assert (failed["name"], failed["index"]) == ("extract", 7)
        assert [len(page) for page in await walk(client, f"/runs/{run}/tasks", "tasks", name="load")] == [1]


@pytest.mark.slow
async def test_a_run_of_a_hundred_thousand_tasks_is_read_page_by_page(bench: Bench) -> None:
    run = await fan_out(bench, MANY)
    async with await bench.client() as client:
        pages = await walk(client, f"/runs/{run}/tasks", "tasks", limit=1000)
        assert (len(pages), sum(map(len, pages))) == (MANY // 1000 + 1, MANY + 1)
        assert len({(row["name"], row["index"]) for page in pages for row in page}) == MANY + 1


@pytest.mark.parametrize("cursor", ["stranger", "extract[x]", "-", "extract[1]/1"])
async def test_a_cursor_of_somebody_else_is_refused(bench: Bench, cursor: str) -> None:
    run = await fan_out(bench, 2)
    async with await bench.client() as client:
        answer = await client.get(f"{PREFIX}/runs/{run}/tasks", params={"cursor": cursor})
        assert answer.status_code in (400, 422)


async def test_workflows_versions_schedules_tokens_and_audit_are_paged(bench: Bench) -> None:
    for name in ("a", "b", "c"):
        await bench.deploy(name, schedule=Schedule("0 2 * * *", "UTC"))
        await bench.deploy("one", description=name)
    async with await bench.client() as client:
        for role in ("viewer", "operator"):
            await client.post(f"{PREFIX}/tokens", json={"name": role, "role": role})
        workflows = await walk(client, "/workflows", "workflows", limit=3)
        assert [row["name"] for page in workflows for row in page] == ["a", "b", "c", "one"]
        schedules = await walk(client, "/schedules", "schedules", limit=2)
        assert [[row["workflow"] for row in page] for page in schedules] == [["a", "b"], ["c"]]
        assert [len(page) for page in await walk(client, "/workflows/one/versions", "versions", limit=2)] == [2, 1]
        assert [len(page) for page in await walk(client, "/tokens", "tokens", limit=2)] == [2, 1]
        entries = [row["id"] for page in await walk(client, "/audit", "entries", limit=1) for row in page]
        assert entries == sorted(entries, reverse=True)
        assert len(entries) == 2


async def test_a_list_of_runs_with_large_params_is_small_and_one_run_has_them(bench: Bench) -> None:
    version = await bench.deploy()
    large = {"n": 1, "event": {"text": "x" * 500_000}}
    ids = [f"0000000000{number:02}" for number in range(20)]
    await bench.store.create_runs([NewRun(RunId(id), "flow", version.id, large) for id in ids], NOW)
    async with await bench.client() as client:
        for path in ("/api/v1/runs?limit=1000", "/api/v1/workflows", "/api/v1/workflows/flow", "/api/v1/status"):
            answer = await client.get(path)
            assert (answer.status_code, len(answer.content) < 50_000) == (200, True), path
        listed = (await client.get("/api/v1/runs")).json()["runs"]
        assert {run["params"] for run in listed} == {None}
        assert (await client.get(f"/api/v1/runs/{ids[0]}")).json()["params"] == large


async def test_a_page_of_large_tasks_ends_early_and_passes_nothing_over(bench: Bench) -> None:
    run, ann, output = await bench.run(), SchedulerId("ann"), InlineOutput('"' + "x" * 64_000 + '"')
    await bench.store.register(ann, "ann", "scheduler", NOW)
    (claimed,) = (await bench.store.claim_runs(ann, 1, NOW)).runs
    keys = [TaskKey("extract", number) for number in range(200)]
    tasks = tuple(Task(key, TaskStatus.SUCCESS, "process", 1, output=output) for key in keys)
    await bench.store.commit(ann, [RunChanges(run.id, claimed.epoch, claimed.run, tasks)], NOW)
    async with await bench.client() as client:
        pages = await walk(client, f"/runs/{run.id}/tasks", "tasks", limit=1000)
    assert [row["index"] for page in pages for row in page] == list(range(200))
    assert len(pages) > 2
    assert all(sum(len(row["output"]) for row in page) <= PAGE_BYTES for page in pages)


async def test_a_run_too_large_for_one_answer_is_refused_with_the_way_to_read_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = await fan_out(bench, 100)
    async with await bench.client() as client:
        assert (await client.get(f"/api/v1/runs/{run}")).status_code == 200
        monkeypatch.setattr(views, "MOST_BYTES", 10_000)
        refused = await client.get(f"/api/v1/runs/{run}")
        assert (refused.status_code, refused.json()["code"]) == (409, "ORK803")
        assert f"/api/v1/runs/{run}/tasks" in refused.json()["hint"]
        pages = await walk(client, f"/runs/{run}/tasks", "tasks", limit=1000)
        assert len(pages[0]) >= 100

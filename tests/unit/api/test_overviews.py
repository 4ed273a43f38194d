"""Reads about many runs: the overview, the grid and durations of a workflow, and commands for many runs."""

from __future__ import annotations

from datetime import timedelta

from ork.api.routing import PREFIX
from ork.definition.custom import CustomExecutor
from ork.definition.project import Project
from ork.model.access import Role
from ork.model.ids import RunId, TaskKey
from ork.model.record import replaced
from ork.model.run import NewRun, RunStatus
from ork.model.task import Task, TaskStatus
from ork.model.workflow import Rate, Schedule
from ork.state.records import RunChanges
from tests.unit.api.conftest import ANN, NOW, Bench, workflow
from tests.unit.api.test_run_reads import BOTH, failed_run, with_store


async def past_run(bench: Bench, id: str, days: float, seconds: float) -> None:
    """A successful run that was created so many days ago."""
    version = await bench.deploy()
    then = NOW - timedelta(days=days)
    await bench.store.create_runs([NewRun(RunId(id), "flow", version.id, {})], then)
    await bench.store.register(ANN, "identity", "scheduler", NOW)
    (claimed,) = (await bench.store.claim_runs(ANN, 10, NOW)).runs
    times = {"started_at": then, "finished_at": then + timedelta(seconds=seconds)}
    tasks = [Task(TaskKey(name), TaskStatus.SUCCESS, "process", 1, **times) for name in ("extract", "load")]
    row = replaced(claimed.run, status=RunStatus.SUCCESS, **times)
    change = RunChanges(row.id, claimed.epoch, row, tuple(tasks), release_ownership=True)
    await bench.store.commit(ANN, [change], NOW)


@BOTH
async def test_the_overview_has_what_failed_what_runs_and_how_workflows_are(bench: Bench, kind: str) -> None:
    async with with_store(bench, kind) as used, await used.client(Role.VIEWER) as client:
        object.__setattr__(used.api, "now", lambda: NOW + timedelta(minutes=5))
        daily = workflow("daily", schedule=Schedule("0 2 * * *"))
        await used.store.save_version(daily, origin=None, now=NOW, next_fire=NOW)
        failed = await failed_run(used.store)
        waiting = await used.run()
        found = (await client.get(f"{PREFIX}/overview")).json()
        assert [run["id"] for run in found["failures"]] == [failed.id]
        assert [each["run"]["id"] for each in found["running"]] == [waiting.id]
        assert found["running"][0]["progress"] == {"done": 0, "total": 0}
        assert found["late"] == [{"workflow": "daily", "due": "2026-03-01T12:00:00.000000Z"}]
        fan = next(each for each in found["workflows"] if each["name"] == "fan")
        assert (fan["runs"][0]["id"], fan["runs"][0]["seconds"], fan["success_rate"]) == (failed.id, 31.0, 0.0)
        later = (await client.get(f"{PREFIX}/overview?since=2026-03-01T12:01:00Z")).json()
        assert later["failures"] == []
        first = (await client.get(f"{PREFIX}/overview?limit=1")).json()
        assert (len(first["workflows"]), first["cursor"]) == (1, "daily")
        listed = (await client.get(f"{PREFIX}/runs?created_before=2026-03-01T12:00:00Z")).json()
        assert listed["runs"] == []
        assert (await client.get(f"{PREFIX}/runs?created_after=yesterday")).status_code == 400


@BOTH
async def test_a_grid_has_every_task_in_every_run(bench: Bench, kind: str) -> None:
    async with with_store(bench, kind) as used, await used.client(Role.VIEWER) as client:
        failed = await failed_run(used.store)
        for _ in range(2):  # the second time from what is kept
            grid = (await client.get(f"{PREFIX}/workflows/fan/grid")).json()
            assert grid["tasks"] == ["extract", "side", "load", "publish"]
            (run,) = grid["runs"]
            assert (run["id"], run["seconds"]) == (failed.id, 31.0)
            assert run["cells"][2] == {"status": "failed", "instances": 3, "failed": 1}
            assert run["cells"][3]["status"] == "skipped"
        assert (await client.get(f"{PREFIX}/workflows/nothing/grid")).status_code == 404
        assert (await client.get(f"{PREFIX}/workflows/fan/grid?runs=51")).status_code == 422


@BOTH
async def test_durations_are_compared_with_the_week_before(bench: Bench, kind: str) -> None:
    async with with_store(bench, kind) as used, await used.client(Role.VIEWER) as client:
        object.__setattr__(used.api, "now", lambda: NOW)
        for number, (days, seconds) in enumerate([(1, 30), (2, 10), (3, 20), (8, 10), (20, 500)]):
            await past_run(used, f"00000000000{number}", days, seconds)
        found = (await client.get(f"{PREFIX}/workflows/flow/durations")).json()
        assert found["runs"] == {"count": 3, "p50": 20.0, "p95": 30.0, "p50_before": 10.0, "change": 1.0}
        assert [(task["name"], task["p50"]) for task in found["tasks"]] == [("extract", 20.0), ("load", 20.0)]


async def test_one_command_for_many_runs_is_answered_for_each(bench: Bench) -> None:
    failed, waiting = await failed_run(bench.store), await bench.run()
    async with await bench.client(Role.OPERATOR) as client:
        body = {"kind": "cancel", "runs": [failed.id, waiting.id, "0000000zzzzz"]}
        answer = await client.post(f"{PREFIX}/run-commands", json=body)
        assert answer.status_code == 202
        late, done, unknown = answer.json()["results"]
        assert (late["command"], late["error"]["status"]) == (None, 409)
        assert done["command"]
        assert done["error"] is None
        assert unknown["error"]["status"] == 404
        assert [each.kind for each in await bench.store.pending_commands(waiting.id)] == ["cancel"]
        for wrong in ({"kind": "approve", "runs": ["a"]}, {"kind": "retry", "runs": []}, {"kind": "retry"}):
            assert (await client.post(f"{PREFIX}/run-commands", json=wrong)).status_code == 400
    async with await bench.client(Role.VIEWER) as client:
        assert (await client.post(f"{PREFIX}/run-commands", json=body)).status_code == 403


async def test_the_installation_names_its_pools_rates_and_executors(bench: Bench) -> None:
    project = Project(
        pools={"api": 4, "gpu": 1},
        pool_rates={"api": Rate(100, 60)},
        executor_limits={"process": 3},
        executors={"spark": CustomExecutor("jobs.spark:SparkExecutor")},
    )
    object.__setattr__(bench.api, "project", project)
    async with await bench.client(Role.VIEWER) as client:
        found = (await client.get(f"{PREFIX}/installation")).json()
    assert found["pools"] == [{"name": "api", "slots": 4, "rate": "100/60s"}, {"name": "gpu", "slots": 1, "rate": None}]
    executors = {each["name"]: (each["class"], each["max_workers"]) for each in found["executors"]}
    assert executors["process"] == (None, 3)
    assert executors["spark"] == ("jobs.spark:SparkExecutor", None)
    assert (found["alarm"], found["has_scheduler"]) == ("none", False)


async def test_a_code_is_explained_and_an_unknown_one_is_not_found(bench: Bench) -> None:
    async with await bench.client(Role.VIEWER) as client:
        found = (await client.get(f"{PREFIX}/codes/ORK201")).json()
        assert (found["code"], bool(found["why"]), bool(found["right"])) == ("ORK201", True, True)
        assert (await client.get(f"{PREFIX}/codes/ORK999")).status_code == 404
        assert (await client.get(f"{PREFIX}/codes/else")).status_code in (400, 422)

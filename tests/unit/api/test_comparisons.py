"""Comparisons of runs and of versions, and the params of a workflow as a form needs them."""

from __future__ import annotations

from typing import Any

import pytest

from ork.api.routes import comparisons
from ork.api.routing import PREFIX
from ork.compile.content import make_version
from ork.model.access import Role
from ork.model.ids import AttemptKey, RunId, TaskKey
from ork.model.record import replaced
from ork.model.run import NewRun, Run, RunStatus
from ork.model.task import Failure, FailureKind, InlineOutput, Task, TaskStatus
from ork.model.workflow import CompiledWorkflow, Param
from ork.state.records import RunChanges
from ork.status.compare import Bounds
from tests.unit.api.conftest import ANN, NOW, Bench
from tests.unit.api.test_run_reads import BOTH, at, ended, spec, with_store

FAILURE = Failure(FailureKind.EXCEPTION, "HTTPError: 503")


async def finished(
    bench: Bench, id: str, rows: list[Task], status: RunStatus, params: Any = None, **changed: Any
) -> Run:
    tasks = tuple(replaced(each, **changed) for each in (spec("extract"), spec("load", "extract")))
    version = make_version(CompiledWorkflow("flow", tasks, params=(Param("n", "int"),)), "/project", "flow.yaml")
    await bench.store.save_version(version, origin=None, now=NOW)
    new = NewRun(RunId(id), "flow", version.id, params or {"n": 1})
    await bench.store.create_runs([new], at(int(id, 16)))
    await bench.store.register(ANN, "identity", "scheduler", NOW)
    (claimed,) = (await bench.store.claim_runs(ANN, 10, NOW)).runs
    row = replaced(claimed.run, status=status, started_at=NOW, finished_at=at(len(rows)))
    change = RunChanges(row.id, claimed.epoch, row, tuple(rows), release_ownership=True)
    await bench.store.commit(ANN, [change], NOW)
    return row


async def two_runs(bench: Bench) -> tuple[Run, Run]:
    """A success, and a failure of another version with other params, whose logs differ in their third lines."""
    good = [ended("extract", None, 1, 2, output=InlineOutput("[1]")), ended("load", None, 3, 5)]
    bad = [
        ended("extract", None, 1, 2, output=InlineOutput("[2]")),
        ended("load", None, 3, 4, status=TaskStatus.FAILED, attempt=2, failure=FAILURE),
    ]
    a = await finished(bench, "000000000001", good, RunStatus.SUCCESS)
    b = await finished(bench, "000000000002", bad, RunStatus.FAILED, {"n": 2}, retries=1)
    for run, number, words in ((a, 1, "loaded 100 rows"), (b, 2, "loaded 0 rows")):
        log = f"run {run.id} at 2026-03-0{number} 12:00:0{number}.5\nsame\n{words}\nend in {number}.7 s\n"
        attempt = str(AttemptKey(run.id, TaskKey("load"), number))
        bench.objects.put_specs([(attempt, b"{}")])
        bench.objects.write_log(attempt, 0, log.encode())
    return a, b


@BOTH
async def test_a_comparison_has_fields_params_definition_tasks_and_logs(bench: Bench, kind: str) -> None:
    async with with_store(bench, kind) as used, await used.client(Role.VIEWER) as client:
        a, b = await two_runs(used)
        found = (await client.get(f"{PREFIX}/runs/{a.id}/diff/{b.id}")).json()
        assert found["status"] == {"a": "success", "b": "failed"}
        assert (found["workflow"], found["partial"]) == (None, False)
        assert found["params"] == {"n": {"a": 1, "b": 2}}
        assert found["definition"]["changed"] == {"extract": ["retries"], "load": ["retries"]}
        extract, load = found["tasks"]
        assert (extract["status"], extract["output"], extract["log"]) == (None, {"a": "[1]", "b": "[2]"}, None)
        assert load["error"] == {"a": None, "b": "HTTPError: 503"}
        assert load["log"] == {"line": 3, "a": "loaded 100 rows", "b": "loaded 0 rows"}
        same = (await client.get(f"{PREFIX}/runs/{a.id}/diff/{a.id}")).json()
        assert (same["definition"], same["params"], same["tasks"][1]["log"]) == (None, {}, None)
        previous = (await client.get(f"{PREFIX}/runs/{b.id}/previous-success")).json()
        assert previous["run"]["id"] == a.id
        assert (await client.get(f"{PREFIX}/runs/{a.id}/previous-success")).json() == {"run": None}
        assert (await client.get(f"{PREFIX}/runs/{a.id}/diff/zzzz")).status_code == 404


@BOTH
async def test_of_large_runs_only_tasks_that_ended_differently_are_compared(
    bench: Bench, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rows(failed: int) -> list[Task]:
        states = {failed: {"status": TaskStatus.FAILED, "failure": FAILURE}}
        group = ended("load", None, 1, 9, instances=6, status=TaskStatus.FAILED)
        return [ended("extract", None, 0, 1), group, *(ended("load", n, 1, 2, **states.get(n, {})) for n in range(6))]

    monkeypatch.setattr(comparisons, "BOUNDS", Bounds(tasks=4))
    async with with_store(bench, kind) as used, await used.client(Role.VIEWER) as client:
        a = await finished(used, "000000000001", rows(0), RunStatus.FAILED)
        b = await finished(used, "000000000002", rows(4), RunStatus.FAILED)
        found = (await client.get(f"{PREFIX}/runs/{a.id}/diff/{b.id}")).json()
        assert found["partial"]
        statuses = {row["index"]: row["status"] for row in found["tasks"] if row["name"] == "load"}
        assert statuses == {
            None: None, 0: {"a": "failed", "b": "success"}, 4: {"a": "success", "b": "failed"},
        }  # fmt: skip
        assert "extract" not in {row["name"] for row in found["tasks"]}


async def test_versions_are_compared(bench: Bench) -> None:
    a, b = await two_runs(bench)
    async with await bench.client(Role.VIEWER) as client:
        found = (await client.get(f"{PREFIX}/versions/{a.version}/diff/{b.version}")).json()
        assert (found["added"], found["changed"]) == ([], {"extract": ["retries"], "load": ["retries"]})
        assert found["after"]["tasks"][0]["retries"] == 1
        assert (await client.get(f"{PREFIX}/versions/{a.version}/diff/nothing")).status_code == 404
        listed = (await client.get(f"{PREFIX}/workflows/flow/versions")).json()["versions"]
        assert {each["id"] for each in listed} == {a.version, b.version}
        assert all(each["saved_at"] for each in listed)


async def test_params_are_described_for_a_form(bench: Bench) -> None:
    params = (
        Param("day", "date", description="the day"),
        Param("mode", '"fast" | "slow"', required=False, default="slow"),
        Param("note", "str?", required=False),
        Param("level", "Level", required=False, default=1),
        Param("rows", "list[int]", required=False, default=[1]),
        Param("key", "str", required=False, default="secret", sensitive=True),
        Param("thing", required=False, default={"a": 1}),
    )
    workflow = CompiledWorkflow("formed", (spec("a"),), params=params, types=(("Level", {"enum": [1, 2]}),))
    await bench.store.save_version(make_version(workflow, "/project", "f.yaml"), origin=None, now=NOW)
    async with await bench.client(Role.VIEWER) as client:
        found = (await client.get(f"{PREFIX}/workflows/formed/params")).json()["params"]
        shown = {each["name"]: (each["kind"], each["choices"], each["default"], each["may_be_null"]) for each in found}
        assert shown == {
            "day": ("date", None, None, False),
            "mode": ("choice", ["fast", "slow"], "slow", False),
            "note": ("str", None, None, True),
            "level": ("choice", [1, 2], 1, False),
            "rows": ("list", None, [1], False),
            "key": ("str", None, None, False),
            "thing": ("json", None, {"a": 1}, True),
        }
        assert [each["name"] for each in found if each["required"]] == ["day"]
        assert [each["name"] for each in found if each["sensitive"]] == ["key"]
        assert (await client.get(f"{PREFIX}/workflows/nothing/params")).status_code == 404

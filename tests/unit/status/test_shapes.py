from __future__ import annotations

from ork.model.ids import AttemptKey, RunId, TaskKey
from ork.model.record import replaced
from ork.model.run import RunStatus
from ork.model.task import Attempt, AttemptStatus, StoredOutput
from ork.model.workflow import Schedule, WorkflowEntry
from ork.status.shapes import full_run_json, run_json, task_json, time_json, workflow_json
from tests.unit.status.sample_runs import DIVISION, START, at, done, failed, skipped, spec, view_of

RUN_FIELDS = [
    "id",
    "workflow",
    "version",
    "status",
    "trigger",
    "params",
    "scheduled_for",
    "created_at",
    "started_at",
    "finished_at",
    "error",
]
TASK_FIELDS = [
    "name",
    "index",
    "status",
    "attempt",
    "executor",
    "depends_on",
    "reason",
    "error",
    "exit_code",
    "dispatched_at",
    "started_at",
    "finished_at",
    "output",
    "attempts",
]
ATTEMPT_FIELDS = ["attempt", "status", "error", "exit_code", "started_at", "finished_at"]


def test_times_are_rfc_3339_in_utc() -> None:
    assert time_json(at(0.25)) == "2026-01-01T12:00:00.250000Z"
    assert time_json(None) is None


def test_a_run_has_every_promised_field() -> None:
    view = view_of([spec("a"), spec("b", "a")], [done("a", output='{"x":[1]}')], status=RunStatus.SUCCESS)
    shape = full_run_json(view.run, view.version, view.tasks.values(), ())
    assert set(RUN_FIELDS) <= set(shape)
    assert shape["id"] == "7f3kaaaaaaaa"
    assert shape["tasks"][0]["output"] == {"x": [1]}
    assert "tasks" not in run_json(view.run)


def test_a_task_has_every_promised_field() -> None:
    attempt = Attempt(
        AttemptKey(RunId("r"), TaskKey("a"), 1), AttemptStatus.FAILED, "process", "x", "h", START, failure=DIVISION
    )
    shape = task_json(failed("a", DIVISION), ("b",), [attempt])
    assert set(TASK_FIELDS) <= set(shape)
    assert shape["index"] is None
    assert shape["depends_on"] == ["b"]
    assert shape["error"] == "ZeroDivisionError: division by zero"
    assert set(ATTEMPT_FIELDS) <= set(shape["attempts"][0])
    assert shape["attempts"][0]["status"] == "failed"


def test_a_skipped_task_names_its_reason_and_root_cause() -> None:
    shape = task_json(skipped("load", "transform"), (), [])
    assert (shape["status"], shape["reason"], shape["cause"]) == ("skipped", "transform failed", "transform")


def test_a_large_output_is_not_loaded_but_told() -> None:
    shape = task_json(replaced(done("a"), output=StoredOutput("key", 99)), (), [])
    assert (shape["output"], shape["output_size"]) == (None, 99)


def test_a_workflow_has_every_promised_field() -> None:
    entry = WorkflowEntry("hello", view_of([], []).version.id, True, START, "/x.yaml", Schedule("0 2 * * *"))
    shape = workflow_json(entry, None)
    assert set(shape) >= {"name", "version", "schedule", "enabled", "origin", "last_run"}
    assert shape["schedule"] == {
        "cron": "0 2 * * *", "timezone": "UTC", "catchup": "none", "enabled": True, "jitter": 0.0, "catchup_limit": 100,
    }  # fmt: skip

"""What goes through the server comes out as it went in."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from ork.model.ids import AttemptKey, RunId, TaskKey, VersionId
from ork.model.run import Run, RunStatus
from ork.model.task import (
    Attempt,
    AttemptStatus,
    Failure,
    FailureKind,
    GiveUp,
    InlineOutput,
    StoredOutput,
    Task,
    TaskStatus,
)
from ork.model.workflow import Catchup, Schedule, Trigger, WorkflowEntry
from ork.status.jobs import job_names
from ork.status.shapes import attempt_json, run_json, task_row, workflow_json
from ork.status.wire import read_attempt, read_run, read_task, read_workflow

NOW = datetime(2026, 3, 1, 12, 0, 0, 5, tzinfo=UTC)
RUN = RunId("00000000000a")
FAILURE = Failure(FailureKind.EXCEPTION, "ValueError: x", {"type": "ValueError", "frames": []})


def through(row: object) -> dict[str, object]:
    sent: dict[str, object] = json.loads(json.dumps(row))
    return sent


def test_a_run_comes_out_as_it_went_in() -> None:
    plain = Run(RUN, "flow", VersionId("v"), RunStatus.PENDING, Trigger.MANUAL, {}, NOW)
    full = Run(
        RUN, "flow", VersionId("v"), RunStatus.PAUSED, Trigger.BACKFILL, {"a": [1, None]}, NOW, NOW, NOW, NOW,
        "went wrong", 3, -2, NOW, "paused by eve", True, "000b/x/0/1",
    )  # fmt: skip
    assert [read_run(through(run_json(run))) for run in (plain, full)] == [plain, full]


@pytest.mark.parametrize(
    "task",
    [
        Task(TaskKey("a"), TaskStatus.PENDING, "process", retry_at=NOW, attempt=2, earlier_attempts=1),
        Task(TaskKey("a", 3), TaskStatus.SUCCESS, "python", 1, output=InlineOutput('{"a":1.5}'), item='{"x":"ä"}'),
        Task(TaskKey("a"), TaskStatus.RUNNING, "python", instances=6, item="3"),
        Task(TaskKey("a"), TaskStatus.RUNNING, "python", instances=6),
        Task(TaskKey("a"), TaskStatus.FAILED, "process", 1, 0, None, None, FAILURE, 3, NOW, NOW, NOW),
        Task(TaskKey("b"), TaskStatus.SKIPPED, "process", reason="because", cause=TaskKey("a", 7), cache_key="k"),
        Task(
            TaskKey("a", 0), TaskStatus.SUCCESS, "process", 2,
            output=StoredOutput("runs/00000000000a/a.0.2.output.json", 10**6),
        ),
    ],
)  # fmt: skip
def test_a_task_comes_out_as_it_went_in(task: Task) -> None:
    back = read_task(RUN, through(task_row(task, ("x",))))
    if task.item is not None:
        assert json.loads(back.item or "") == json.loads(task.item)
        back, task = (Task(**{**_fields(each), "item": None}) for each in (back, task))
    assert back == task


def _fields(task: Task) -> dict[str, object]:
    return {name: getattr(task, name) for name in Task.__slots__}


def test_an_attempt_comes_out_without_what_is_nobodys_business() -> None:
    waits_for = json.dumps([{"http": "https://user:secret@jobs.example/1?key=secret", "headers": {"a": "secret"}}])
    attempt = Attempt(
        AttemptKey(RUN, TaskKey("a", 1), 2), AttemptStatus.RUNNING, "process", "external", "secret-hash", NOW, "api",
        NOW, None, 1, FAILURE, GiveUp.STALE, NOW, 9, NOW, waits_for,
    )  # fmt: skip
    row = through(attempt_json(attempt))
    assert "secret" not in json.dumps(row)
    back = read_attempt(RUN, row)
    assert job_names(back.waits_for) == job_names(waits_for)
    same = ("key", "status", "executor", "dispatched_at", "pool", "started_at", "exit_code", "failure", "closing")
    assert [getattr(back, name) for name in same] == [getattr(attempt, name) for name in same]


def test_a_workflow_comes_out_as_it_went_in() -> None:
    schedule = Schedule("0 3 * * *", "Europe/Berlin", Catchup.ALL, False, 30.0, 7)
    for given in (None, schedule):
        entry = WorkflowEntry("flow", VersionId("v"), True, NOW, "flow.yaml", given)
        assert read_workflow(through(workflow_json(entry, None))) == entry

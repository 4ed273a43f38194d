"""Runs made by hand, for tests that show them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from ork.model.ids import RunId, TaskKey, VersionId
from ork.model.run import Run, RunStatus
from ork.model.task import Failure, FailureKind, InlineOutput, Task, TaskStatus
from ork.model.workflow import Command, CompiledWorkflow, Const, TaskSpec, Trigger, Version
from ork.state.records import RunUpdate
from ork.status.run_view import RunView

START = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def spec(name: str, *depends_on: str, **fields: Any) -> TaskSpec:
    return TaskSpec(name, "process", Command((Const("true"),)), depends_on, **fields)


def view_of(
    specs: list[TaskSpec],
    tasks: list[Task],
    *,
    name: str = "hello",
    status: RunStatus = RunStatus.RUNNING,
    **fields: Any,
) -> RunView:
    """A view of run `7f3k…`, started at 0 s and, if it is final, finished at 0.5 s."""
    workflow_fields = {key: fields.pop(key) for key in ("max_active_runs", "budget") if key in fields}
    version = Version(VersionId("v1"), CompiledWorkflow(name, tuple(specs), **workflow_fields), "/project")
    fields = {"started_at": START, "finished_at": at(0.5) if status.is_final else None} | fields
    run = Run(RunId("7f3kaaaaaaaa"), name, VersionId("v1"), status, Trigger.MANUAL, {}, created_at=START, **fields)
    view = RunView(run, version, "7f3k")
    view.apply(RunUpdate(run, tuple(tasks), 1))
    return view


def done(name: str, seconds: float = 0.2, output: str | None = None, index: int | None = None) -> Task:
    return Task(
        TaskKey(name, index),
        TaskStatus.SUCCESS,
        "process",
        attempt=1,
        started_at=START,
        finished_at=at(seconds),
        output=InlineOutput(output) if output is not None else None,
    )


def failed(name: str, failure: Failure, attempt: int = 1) -> Task:
    return Task(
        TaskKey(name),
        TaskStatus.FAILED,
        "process",
        attempt=attempt,
        started_at=at(0.2),
        finished_at=at(0.3),
        failure=failure,
    )


def waiting(name: str, **fields: Any) -> Task:
    return Task(TaskKey(name), TaskStatus.PENDING, "process", **fields)


def running(name: str, since: float = 0.0, **fields: Any) -> Task:
    return Task(TaskKey(name), TaskStatus.RUNNING, "process", attempt=1, started_at=at(since), **fields)


def skipped(name: str, cause: str) -> Task:
    return Task(
        TaskKey(name),
        TaskStatus.SKIPPED,
        "process",
        reason=f"{cause} failed",
        cause=TaskKey(cause),
        finished_at=at(0.3),
    )


DIVISION = Failure(
    FailureKind.EXCEPTION,
    "ZeroDivisionError: division by zero",
    {
        "type": "ZeroDivisionError",
        "message": "division by zero",
        "frames": [
            {
                "file": "tasks.py",
                "line": 8,
                "function": "transform",
                "source": '    return {"active": total / row["qty"]}',
                "caret": [22, 40],
            }
        ],
        "inputs": {"rows": "12"},
    },
)

"""Runs, tasks and attempts on their way through the server: the JSON shapes and whatever else a client needs to show
what the command line shows beside the store. What is read back is what was written, but for what is nobody's business:
tokens, and the headers of jobs that are waited for.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from ork.model.ids import AttemptKey, RunId, TaskKey, VersionId
from ork.model.run import Run, RunStatus
from ork.model.task import (
    Attempt,
    AttemptStatus,
    Failure,
    FailureKind,
    GiveUp,
    InlineOutput,
    Output,
    StoredOutput,
    Task,
    TaskStatus,
)
from ork.model.workflow import Catchup, Schedule, Trigger, WorkflowEntry
from ork.objects.json_text import dumps
from ork.objects.layout import attempt_stem, output_key
from ork.status.instances import is_group
from ork.status.shapes import attempt_json, run_json, task_json, time_json, workflow_json


def run_row(run: Run) -> dict[str, Any]:
    return {
        **run_json(run),
        "round": run.round,
        "priority": run.priority,
        "cancel_requested_at": time_json(run.cancel_requested_at),
        "note": run.note,
        "fresh": run.fresh,
    }


def listed_run_row(run: Run) -> dict[str, Any]:
    return {**run_row(run), "params": None}


def read_run(row: dict[str, Any]) -> Run:
    return Run(
        RunId(row["id"]),
        row["workflow"],
        VersionId(row["version"]),
        RunStatus(row["status"]),
        Trigger(row["trigger"]),
        row["params"] or {},
        read_moment(row["created_at"]),
        read_time(row["scheduled_for"]),
        read_time(row["started_at"]),
        read_time(row["finished_at"]),
        row["error"],
        row["round"],
        row["priority"],
        read_time(row["cancel_requested_at"]),
        row["note"],
        row["fresh"],
        row["parent"],
        row.get("unreadable"),  # an older server does not say
    )


def task_row(task: Task, depends_on: Iterable[str]) -> dict[str, Any]:
    """Without attempts. Of a task that has fanned out `instances` says into how many, and its instances are rows too."""
    row = task_json(task, depends_on, ())
    del row["attempts"]
    width = int(task.item) if is_group(task) and task.item else None
    return {
        **row,
        "failure": _failure_row(task.failure),
        "earlier_attempts": task.earlier_attempts,
        "instances": task.instances,
        "width": width,
        "cache_key": task.cache_key,
    }


def read_task(run: RunId, row: dict[str, Any]) -> Task:
    key = TaskKey(row["name"], row["index"])
    item = row["width"] if key.index is None else row.get("item")
    return Task(
        key,
        TaskStatus(row["status"]),
        row["executor"],
        row["attempt"],
        row["earlier_attempts"],
        row["reason"],
        _read_cause(row["cause"]),
        _read_failure(row["failure"]),
        row["exit_code"],
        read_time(row["dispatched_at"]),
        read_time(row["started_at"]),
        read_time(row["finished_at"]),
        read_time(row["retry_at"]),
        _read_output(AttemptKey(run, key, row["attempt"]), row),
        row["instances"],
        None if item is None else dumps(item),
        row["cache_key"],
    )


def attempt_row(attempt: Attempt) -> dict[str, Any]:
    return {
        "task": attempt.key.task.name,
        "index": attempt.key.task.index,
        **attempt_json(attempt),
        "executor": attempt.executor,
        "pool": attempt.pool,
        "failure": _failure_row(attempt.failure),
        "closing": attempt.closing.value if attempt.closing else None,
    }


def read_attempt(run: RunId, row: dict[str, Any]) -> Attempt:
    waits_for = row.get("waits_for")
    return Attempt(
        AttemptKey(run, TaskKey(row["task"], row["index"]), row["attempt"]),
        AttemptStatus(row["status"]),
        row["executor"],
        external_name=row.get("external_name") or "",
        token_hash="",
        dispatched_at=read_moment(row["dispatched_at"]),
        pool=row["pool"],
        started_at=read_time(row["started_at"]),
        finished_at=read_time(row["finished_at"]),
        exit_code=row["exit_code"],
        failure=_read_failure(row["failure"]),
        closing=GiveUp(row["closing"]) if row["closing"] else None,
        waits_for=dumps([{"call": name} for name in waits_for]) if waits_for else None,
        metrics=row.get("metrics"),
        ran_in=row.get("ran_in"),
    )


def workflow_row(entry: WorkflowEntry, last_run: Run | None) -> dict[str, Any]:
    shape = workflow_json(entry, last_run)
    if entry.schedule is not None:
        more = {"jitter": entry.schedule.jitter, "catchup_limit": entry.schedule.catchup_limit}
        shape["schedule"] = {**shape["schedule"], **more}
    return {
        **shape,
        "deployed_at": time_json(entry.deployed_at),
        "last_run": listed_run_row(last_run) if last_run else None,
    }


def read_workflow(row: dict[str, Any]) -> WorkflowEntry:
    written = row["schedule"]
    schedule = None
    if written is not None:
        catchup = Catchup(written["catchup"])
        spread = written["jitter"], written["catchup_limit"]
        schedule = Schedule(written["cron"], written["timezone"], catchup, written["enabled"], *spread)
    deployed_at = read_moment(row["deployed_at"])
    return WorkflowEntry(row["name"], VersionId(row["version"]), row["enabled"], deployed_at, row["origin"], schedule)


def read_moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def read_time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _failure_row(failure: Failure | None) -> dict[str, Any] | None:
    if failure is None:
        return None
    return {"kind": failure.kind.value, "message": failure.message, "detail": failure.detail}


def _read_failure(row: dict[str, Any] | None) -> Failure | None:
    return None if row is None else Failure(FailureKind(row["kind"]), row["message"], row["detail"])


def _read_cause(text: str | None) -> TaskKey | None:
    return None if text is None else read_key(text)


def read_key(text: str) -> TaskKey:
    """TASK or TASK[3]."""
    name, bracket, index = text.partition("[")
    return TaskKey(name, int(index[:-1]) if bracket else None)


def _read_output(attempt: AttemptKey, row: dict[str, Any]) -> Output | None:
    if "output_size" in row:
        return StoredOutput(output_key(attempt_stem(attempt)), row["output_size"])
    # A task without an output and one that returned null look the same, and both print `null`.
    return None if row["output"] is None else InlineOutput(dumps(row["output"]))

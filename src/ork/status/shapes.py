"""The JSON shapes of runs, tasks and attempts. Fields may be added, never changed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ork.model.ids import TaskKey
from ork.model.run import Run
from ork.model.sealed import shown_params
from ork.model.task import Attempt, Failure, InlineOutput, Output, StoredOutput, Task
from ork.model.workflow import Schedule, Version, WorkflowEntry
from ork.status.instances import is_group
from ork.status.jobs import job_names
from ork.status.shown import expect_outputs_of, shown_value

if TYPE_CHECKING:
    from ork.model.access import AuditEntry, Token
    from ork.status.schedules import Upcoming


def time_json(moment: datetime | None) -> str | None:
    """RFC 3339 in UTC, with microseconds."""
    if moment is None:
        return None
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def run_json(run: Run) -> dict[str, Any]:
    """A run without its tasks."""
    return {
        "id": run.id,
        "workflow": run.workflow,
        "version": run.version,
        "status": run.status.value,
        "trigger": run.trigger.value,
        "params": shown_params(run.params),
        "scheduled_for": time_json(run.scheduled_for),
        "created_at": time_json(run.created_at),
        "started_at": time_json(run.started_at),
        "finished_at": time_json(run.finished_at),
        "error": run.error,
        "parent": run.parent,
        "note": run.note,
        "unreadable": run.unreadable,
    }


def listed_run_json(run: Run) -> dict[str, Any]:
    """A run in a list: its params are left out (null), because a page of them could be a gigabyte."""
    return {**run_json(run), "params": None}


def full_run_json(run: Run, version: Version, tasks: Iterable[Task], attempts: Iterable[Attempt]) -> dict[str, Any]:
    """A run with its tasks and their attempts. Instances are tasks with an index; they stand for the whole task."""
    by_task: dict[TaskKey, list[Attempt]] = {}
    for attempt in attempts:
        by_task.setdefault(attempt.key.task, []).append(attempt)
    expect_outputs_of(version.workflow)
    needs = {spec.name: spec.depends_on for spec in version.workflow.tasks}
    shown = (task for task in tasks if not is_group(task))
    rows = [task_json(task, needs.get(task.key.name, ()), by_task.get(task.key, [])) for task in shown]
    return {**run_json(run), "tasks": rows}


def task_json(task: Task, depends_on: Iterable[str], attempts: Iterable[Attempt]) -> dict[str, Any]:
    return {
        "name": task.key.name,
        "index": task.key.index,
        **_item_fields(task),
        "status": task.status.value,
        "attempt": task.attempt,
        "executor": task.executor,
        "depends_on": list(depends_on),
        "reason": task.reason,
        "cause": str(task.cause) if task.cause else None,
        "error": _error(task.failure),
        "exit_code": task.exit_code,
        "dispatched_at": time_json(task.dispatched_at),
        "started_at": time_json(task.started_at),
        "finished_at": time_json(task.finished_at),
        "retry_at": time_json(task.retry_at),
        **_output_fields(task.output),
        "attempts": [attempt_json(attempt) for attempt in attempts],
    }


def attempt_json(attempt: Attempt) -> dict[str, Any]:
    return {
        "attempt": attempt.key.number,
        "status": attempt.status.value,
        "error": _error(attempt.failure),
        "exit_code": attempt.exit_code,
        "dispatched_at": time_json(attempt.dispatched_at),
        "started_at": time_json(attempt.started_at),
        "finished_at": time_json(attempt.finished_at),
        **({"waits_for": job_names(attempt.waits_for)} if attempt.waits_for else {}),
        "external_name": attempt.external_name or None,
        "ran_in": attempt.ran_in,
        "metrics": attempt.metrics,
    }


def workflow_json(entry: WorkflowEntry, last_run: Run | None) -> dict[str, Any]:
    return {
        "name": entry.name,
        "version": entry.version,
        "schedule": schedule_json(entry.schedule),
        "enabled": entry.enabled,
        "origin": entry.origin,
        "last_run": listed_run_json(last_run) if last_run else None,
    }


def token_json(token: Token) -> dict[str, Any]:
    return {
        "id": token.id,
        "name": token.name,
        "role": token.role.value,
        "created_at": time_json(token.created_at),
        "revoked_at": time_json(token.revoked_at),
        "expires_at": time_json(token.expires_at),
        "last_used_at": time_json(token.last_used_at),
    }


def audit_json(entry: AuditEntry) -> dict[str, Any]:
    return {
        "id": entry.id,
        "at": time_json(entry.at),
        "by": entry.by,
        "action": entry.action,
        "subject": entry.subject,
        "detail": json.loads(entry.detail) if entry.detail else None,
        "token": entry.token,
        "address": entry.address,
    }


def schedule_json(schedule: Schedule | None) -> Mapping[str, Any] | None:
    if schedule is None:
        return None
    return {
        "cron": schedule.cron,
        "timezone": schedule.timezone,
        "catchup": schedule.catchup.value,
        "enabled": schedule.enabled,
    }


def _error(failure: Failure | None) -> str | None:
    return failure.message if failure else None


def _item_fields(task: Task) -> dict[str, Any]:
    """Of an instance: the item of the fan-out that it works on."""
    if task.key.index is None or task.item is None:
        return {}
    return {"item": shown_value(json.loads(task.item))}


def _output_fields(output: Output | None) -> dict[str, Any]:
    """A large output stays where it is: `output` is null and `output_size` tells that there is one."""
    match output:
        case InlineOutput(text):
            return {"output": shown_value(json.loads(text))}
        case StoredOutput(_, size):
            return {"output": None, "output_size": size}
        case None:
            return {"output": None}


def upcoming_json(upcoming: Upcoming) -> dict[str, Any]:
    """A schedule and its next times."""
    entry = upcoming.entry
    schedule = entry.schedule
    return {
        "workflow": entry.workflow,
        "cron": schedule.cron,
        "timezone": schedule.timezone,
        "catchup": schedule.catchup.value,
        "enabled": entry.enabled,
        "next": [time_json(time) for time in upcoming.times],
        "jitter": schedule.jitter,
        "next_fire": time_json(entry.next_fire),
    }

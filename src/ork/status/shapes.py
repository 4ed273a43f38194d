"""Runs, tasks, attempts and workflows as JSON, for `--json` and the HTTP API. Fields may be added, never changed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ork.model.ids import TaskKey
from ork.model.json_fields import time_json as time_json
from ork.model.json_fields import to_json
from ork.model.run import Run
from ork.model.secret import redacted_params
from ork.model.task import Attempt, Failure, InlineOutput, Output, StoredOutput, Task
from ork.model.workflow import Schedule, Version, WorkflowEntry
from ork.status.jobs import job_names
from ork.status.run_view import is_group
from ork.status.secret_masking import mask_secrets_of, mask_value

if TYPE_CHECKING:
    from ork.model.access import AuditEntry, Token
    from ork.status.schedules import Upcoming

_TASK_FIELDS_OF_THEIR_OWN = frozenset({"key", "cause", "output", "item"})
_ATTEMPT_FIELDS_OF_THEIR_OWN = frozenset({"key", "token_hash", "external_name", "waits_for"})


def run_json(run: Run) -> dict[str, Any]:
    """A run without its tasks."""
    return {**to_json(run), "params": redacted_params(run.params)}


def listed_run_json(run: Run) -> dict[str, Any]:
    """A run in a list. `params` is null, because a page of them could be a gigabyte."""
    return {**to_json(run), "params": None}


def full_run_json(run: Run, version: Version, tasks: Iterable[Task], attempts: Iterable[Attempt]) -> dict[str, Any]:
    """A run with its tasks and their attempts. Instances are tasks with an index; their fan-out itself is not listed."""
    by_task: dict[TaskKey, list[Attempt]] = {}
    for attempt in attempts:
        by_task.setdefault(attempt.key.task, []).append(attempt)
    mask_secrets_of(version.workflow)
    needs = {spec.name: spec.depends_on for spec in version.workflow.tasks}
    shown = (task for task in tasks if not is_group(task))
    rows = [task_json(task, needs.get(task.key.name, ()), by_task.get(task.key, [])) for task in shown]
    return {**run_json(run), "tasks": rows}


def task_json(task: Task, depends_on: Iterable[str], attempts: Iterable[Attempt]) -> dict[str, Any]:
    return {**task_row(task, depends_on), "attempts": [attempt_json(attempt) for attempt in attempts]}


def task_row(task: Task, depends_on: Iterable[str]) -> dict[str, Any]:
    """A task without its attempts. `instances` and `width` are set for a fan-out, `item` for an instance."""
    item = None if task.item is None else json.loads(task.item)
    return {
        "name": task.key.name,
        "index": task.key.index,
        **to_json(task, skip=_TASK_FIELDS_OF_THEIR_OWN),
        "item": mask_value(item) if task.key.index is not None else None,
        "width": item if is_group(task) else None,
        "depends_on": list(depends_on),
        "cause": str(task.cause) if task.cause else None,
        "error": _error(task.failure),
        **_output_json(task.output),
    }


def attempt_json(attempt: Attempt) -> dict[str, Any]:
    """An attempt without its token; of external jobs only the names."""
    return {
        "task": attempt.key.task.name,
        "index": attempt.key.task.index,
        "attempt": attempt.key.number,
        **to_json(attempt, skip=_ATTEMPT_FIELDS_OF_THEIR_OWN),
        "external_name": attempt.external_name or None,
        "waits_for": job_names(attempt.waits_for) if attempt.waits_for else None,
        "error": _error(attempt.failure),
    }


def workflow_json(entry: WorkflowEntry, last_run: Run | None) -> dict[str, Any]:
    return {**to_json(entry), "last_run": listed_run_json(last_run) if last_run else None}


def token_json(token: Token) -> dict[str, Any]:
    return to_json(token, skip=("digest",))


def audit_json(entry: AuditEntry) -> dict[str, Any]:
    return {**to_json(entry), "detail": json.loads(entry.detail) if entry.detail else None}


def schedule_json(schedule: Schedule | None) -> dict[str, Any] | None:
    return None if schedule is None else to_json(schedule)


def _error(failure: Failure | None) -> str | None:
    return failure.message if failure else None


def _output_json(output: Output | None) -> dict[str, Any]:
    """A large output stays in the object store: `output` is null and `output_size` is its size."""
    match output:
        case InlineOutput(text):
            return {"output": mask_value(json.loads(text)), "output_size": None}
        case StoredOutput(_, size):
            return {"output": None, "output_size": size}
        case None:
            return {"output": None, "output_size": None}


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

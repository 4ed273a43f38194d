"""The head of a run's page in one read: its counts, its first failures, how far it is, and its critical path."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from ork.model.ids import RunId
from ork.model.json_fields import to_json
from ork.model.run import Run
from ork.model.task import Task, TaskStatus
from ork.model.workflow import Version
from ork.objects.calls import in_thread
from ork.state.reading import StateReader
from ork.state.records import TaskCount, TaskFilter, TaskTimes
from ork.status.columns import start_of
from ork.status.critical import PathStep, critical_path
from ork.status.history import MAX_TASKS, load_history
from ork.status.run_view import MANY_TASKS, version_of
from ork.status.secret_masking import hidden_params, mask_params, mask_secrets_of
from ork.status.shapes import run_json, time_json

FAILURES = 20
PAGE = 2000
_FAILED = frozenset({TaskStatus.FAILED})


async def run_summary(store: StateReader, run: RunId, now: datetime) -> dict[str, Any] | None:
    """None if the run does not exist. Costs the same for any number of instances, but for counting them."""
    counts = await store.count_tasks(run)
    fans = {each.name for each in counts if each.is_instance}
    # The rows of fan-outs are among those read, but only their instances are shown.
    update = await store.run_updates(run, None, TaskFilter(statuses=_FAILED, limit=FAILURES + 1 + len(fans)))
    if update is None:
        return None
    version = await version_of(store, update.run)
    mask_secrets_of(version.workflow)
    update = mask_params(await hidden_params(store, update.run), update)
    failed = [task for task in update.tasks if task.key.index is not None or task.key.name not in fans]
    estimate = await _estimate(store, update.run, now)
    times = await _own_times(store, update.run)

    def shaped() -> dict[str, Any]:
        totals = total_counts(counts)
        done = sum(number for status, number in totals.items() if status.is_final)
        path = critical_path(version.workflow.tasks, times, start_of(update.run))
        return {
            "run": run_json(update.run),
            "mark": update.mark,
            "counts": {status.value: number for status, number in totals.items() if number},
            "tasks": [task_counts(name, rows) for name, rows in counts_by_task(version, counts).items()],
            "failures": [_failure(task) for task in failed[:FAILURES]],
            "more_failures": len(failed) > FAILURES,
            "progress": {"done": done, "total": sum(totals.values()) or len(version.workflow.tasks)},
            "estimate": estimate,
            "critical_path": [_step_json(step) for step in path],
        }

    # A workflow of many tasks takes longer than the event loop may be held.
    return shaped() if len(version.workflow.tasks) < MANY_TASKS else await in_thread(shaped)


def total_counts(counts: tuple[TaskCount, ...]) -> dict[TaskStatus, int]:
    """The tasks of the run by status. A fan-out counts as its instances."""
    fans = {each.name for each in counts if each.is_instance}
    totals = dict.fromkeys(TaskStatus, 0)
    for each in counts:
        if each.is_instance or each.name not in fans:
            totals[each.status] += each.number
    return totals


def counts_by_task(version: Version, counts: Iterable[TaskCount]) -> dict[str, list[TaskCount]]:
    """The counts of each task, in workflow order; none for tasks of a run that has not started."""
    found: dict[str, list[TaskCount]] = {spec.name: [] for spec in version.workflow.tasks}
    for each in counts:
        found.setdefault(each.name, []).append(each)
    return found


def task_counts(name: str, counts: list[TaskCount]) -> dict[str, Any]:
    """A task's own status, and of a fan-out the number of instances in each status."""
    if len(counts) == 1 and not counts[0].is_instance:
        return {"name": name, "status": counts[0].status.value, "instances": None}
    instances = {each.status.value: each.number for each in counts if each.is_instance}
    own = next((each.status.value for each in counts if not each.is_instance), None)
    return {"name": name, "status": own, "instances": instances or None}


def _failure(task: Task) -> dict[str, Any]:
    return {
        "name": task.key.name,
        "index": task.key.index,
        "attempt": task.attempt,
        "failure": to_json(task.failure) if task.failure else None,
        "exit_code": task.exit_code,
        "finished_at": time_json(task.finished_at),
    }


async def _estimate(store: StateReader, run: Run, now: datetime) -> dict[str, Any] | None:
    """From the durations of the last successful runs; None for a run that has ended, not started, or has no history."""
    if run.status.is_final or run.started_at is None:
        return None
    history = await load_history(store, run.workflow, MAX_TASKS + 1)
    left = history.seconds_left((now - run.started_at).total_seconds())
    return None if left is None else {"seconds_left": left, "median": history.median, "runs": history.run_count}


async def _own_times(store: StateReader, run: Run) -> list[TaskTimes]:
    """The times of all tasks of a run that has ended, without instances."""
    rows: list[TaskTimes] = []
    after, is_last = None, not run.status.is_final
    while not is_last:
        page = await store.task_times(run.id, after=after, limit=PAGE, with_instances=False)
        rows += page.tasks.rows
        after, is_last = page.last, page.last is None
    return rows


def _step_json(step: PathStep) -> dict[str, Any]:
    return {
        "name": step.name,
        "started_at": _moment(step.started),
        "finished_at": _moment(step.finished),
        "seconds": (step.finished - step.started) / 1000,
        "waited": step.waited / 1000,
        "saves": step.saves / 1000,
    }


def _moment(millis: int) -> str | None:
    return time_json(datetime.fromtimestamp(millis / 1000, UTC))

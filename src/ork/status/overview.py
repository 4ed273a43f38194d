"""An overview of a store: its schedulers, unfinished runs, limits in use, and the longest waiting tasks."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from ork.model.ids import RunId, TaskKey
from ork.model.installation import Control
from ork.model.quarantine import Quarantined
from ork.model.run import Run, RunStatus, SchedulerEntry
from ork.model.task import Task, TaskStatus
from ork.model.workflow import Version
from ork.state.reading import StateReader
from ork.state.records import LimitUse, RunFilter, TaskFilter, UnsentAlert
from ork.status.controls import control_json
from ork.status.run_view import RunView, is_group, version_of
from ork.status.schedulers import liveness, present_schedulers
from ork.status.shapes import listed_run_json, time_json

MAX_RUNS = 20
MAX_UNSENT = 20
# The overview must stay cheap: of larger runs only running tasks are read.
MAX_TASKS = 2000
_RUNNING = frozenset({TaskStatus.RUNNING})


class TaskSince(NamedTuple):
    """A task and the time it entered its status."""

    run: RunId
    task: TaskKey
    since: datetime


class StoreOverview(NamedTuple):
    schedulers: tuple[SchedulerEntry, ...]
    counts: Mapping[RunStatus, int]  # unfinished runs by status
    runs: tuple[Run, ...]  # the newest unfinished runs
    limits: tuple[LimitUse, ...]  # only limits in use
    waiting: int  # tasks that are ready but have no free slot or no scheduler
    oldest_waiting: TaskSince | None
    slowest: TaskSince | None  # the task that has been running longest
    unsent: tuple[UnsentAlert, ...] = ()  # the newest first
    quarantined: tuple[Quarantined, ...] = ()  # items that cannot be decoded or processed
    controls: tuple[Control, ...] = ()  # paused and draining schedulers


async def read_overview(store: StateReader) -> StoreOverview:
    unfinished = frozenset(status for status in RunStatus if not status.is_final)
    page = await store.list_runs(RunFilter(statuses=unfinished, limit=MAX_RUNS))
    waiting: list[TaskSince] = []
    running: list[TaskSince] = []
    for run in page.runs:
        if run.status is RunStatus.RUNNING:
            view = await _small_view(store, run, await version_of(store, run))
            waiting += [TaskSince(run.id, key, since) for key, since in _waiting(view)]
            running += [TaskSince(run.id, key, since) for key, since in _running(view)]
    return StoreOverview(
        tuple(await present_schedulers(store, None)),
        await store.count_unfinished(),
        page.runs,
        tuple(use for use in await store.limit_use() if use.used),
        len(waiting),
        min(waiting, key=lambda each: each.since, default=None),
        min(running, key=lambda each: each.since, default=None),
        await store.unsent_alerts(MAX_UNSENT),
        await store.list_quarantined(),
        await store.list_controls(),
    )


async def _small_view(store: StateReader, run: Run, version: Version) -> RunView:
    """All tasks of a run, or only running tasks if the run is large."""
    view = RunView(run, version, run.id)
    update = await store.run_updates(run.id, None, TaskFilter(limit=MAX_TASKS + 1))
    if update is not None and len(update.tasks) > MAX_TASKS:
        update = await store.run_updates(run.id, None, TaskFilter(statuses=_RUNNING, limit=MAX_TASKS))
    if update is not None:
        view.apply(update)
    return view


def _waiting(view: RunView) -> list[tuple[TaskKey, datetime]]:
    pending = [task for task in view.by_status[TaskStatus.PENDING].values() if task.retry_at is None]
    found = [(task.key, _ready_since(view, task)) for task in pending]
    return [(key, since) for key, since in found if since is not None]


def _ready_since(view: RunView, task: Task) -> datetime | None:
    """When the task's last dependency ended; None while one is unfinished."""
    ends = [view.run.started_at]
    for name in view.specs[task.key.name].depends_on:
        before = view.whole(name)
        if before is None or not before.status.is_final:
            return None
        ends.append(before.finished_at)
    return max((end for end in ends if end is not None), default=None)


def _running(view: RunView) -> list[tuple[TaskKey, datetime]]:
    tasks = view.by_status[TaskStatus.RUNNING].values()
    return [(task.key, task.started_at) for task in tasks if task.started_at and not is_group(task)]


def overview_json(overview: StoreOverview, now: datetime) -> dict[str, Any]:
    return {
        "schedulers": [
            {
                "id": entry.id,
                "kind": entry.kind,
                "identity": entry.identity,
                "started_at": time_json(entry.started_at),
                "runs": entry.active_runs,
                "lease_seconds_left": round(entry.lease_seconds_left, 3),
                "liveness": liveness(entry),
                "notes": list(entry.notes),
            }
            for entry in overview.schedulers
        ],
        "controls": [control_json(control) for control in overview.controls],
        "unfinished": {status.value: number for status, number in overview.counts.items()},
        "runs": [listed_run_json(run) for run in overview.runs],
        "limits": [{"name": use.name, "slots": use.slots, "used": use.used} for use in overview.limits],
        "waiting": overview.waiting,
        "oldest_waiting": _task_since_json(overview.oldest_waiting, now),
        "slowest": _task_since_json(overview.slowest, now),
        "unsent_alerts": [unsent_json(each) for each in overview.unsent],
        "quarantined": [quarantined_json(item) for item in overview.quarantined],
    }


def quarantined_json(item: Quarantined) -> dict[str, Any]:
    return {"kind": item.kind.value, "id": item.id, "reason": item.reason, "since": time_json(item.since)}


def unsent_json(unsent: UnsentAlert) -> dict[str, Any]:
    notice = unsent.notice
    return {
        "id": notice.id,
        "kind": notice.kind.value,
        "workflow": notice.workflow,
        "run": notice.run,
        "task": None if notice.task is None else notice.task.name,
        "index": None if notice.task is None else notice.task.index,
        "raised_at": time_json(notice.raised_at),
        "tries": notice.tries,
        "error": unsent.error,
        "retry_at": time_json(unsent.retry_at),
    }


def _task_since_json(found: TaskSince | None, now: datetime) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "run": found.run,
        "task": str(found.task),
        "since": time_json(found.since),
        "seconds": round(max((now - found.since).total_seconds(), 0.0), 3),
    }

"""What goes on in a store right now: who works, what is unfinished, how full the limits are, what waits longest."""

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
from ork.status.follow import RunView, version_of
from ork.status.instances import is_group
from ork.status.serving import liveness, present_schedulers
from ork.status.shapes import listed_run_json, time_json

MAX_RUNS = 20
MAX_UNSENT = 20
# A look at everything must stay cheap: of larger runs only what is running is read.
MAX_TASKS = 2000
_RUNNING = frozenset({TaskStatus.RUNNING})


class Moment(NamedTuple):
    """A task and since when it has been in its state."""

    run: RunId
    task: TaskKey
    since: datetime


class Pulse(NamedTuple):
    schedulers: tuple[SchedulerEntry, ...]
    counts: Mapping[RunStatus, int]  # of runs that have not ended
    runs: tuple[Run, ...]  # the newest of them
    limits: tuple[LimitUse, ...]  # those in use
    waiting: int  # tasks that miss nothing but a free slot or a scheduler
    oldest_waiting: Moment | None  # the first of them
    slowest: Moment | None  # the task that has been running longest
    unsent: tuple[UnsentAlert, ...] = ()  # what people could not be told, the newest first
    quarantined: tuple[Quarantined, ...] = ()  # what cannot be decoded or worked with
    controls: tuple[Control, ...] = ()  # schedulers that people paused or drain


async def take_pulse(store: StateReader) -> Pulse:
    unfinished = frozenset(status for status in RunStatus if not status.is_final)
    page = await store.list_runs(RunFilter(statuses=unfinished, limit=MAX_RUNS))
    waiting: list[Moment] = []
    running: list[Moment] = []
    for run in page.runs:
        if run.status is RunStatus.RUNNING:
            view = await _small_view(store, run, await version_of(store, run))
            waiting += [Moment(run.id, key, since) for key, since in _waiting(view)]
            running += [Moment(run.id, key, since) for key, since in _running(view)]
    return Pulse(
        tuple(await present_schedulers(store, None)),
        await store.count_unfinished(),
        page.runs,
        tuple(use for use in await store.limit_use() if use.used),
        len(waiting),
        min(waiting, key=lambda moment: moment.since, default=None),
        min(running, key=lambda moment: moment.since, default=None),
        await store.unsent_alerts(MAX_UNSENT),
        await store.list_quarantined(),
        await store.list_controls(),
    )


async def _small_view(store: StateReader, run: Run, version: Version) -> RunView:
    """All tasks of a run; of a large one only some of those that are running."""
    view = RunView(run, version, run.id)
    update = await store.run_updates(run.id, 0, TaskFilter(limit=MAX_TASKS + 1))
    if update is not None and len(update.tasks) > MAX_TASKS:
        update = await store.run_updates(run.id, 0, TaskFilter(statuses=_RUNNING, limit=MAX_TASKS))
    if update is not None:
        view.apply(update)
    return view


def _waiting(view: RunView) -> list[tuple[TaskKey, datetime]]:
    pending = [task for task in view.by_status[TaskStatus.PENDING].values() if task.retry_at is None]
    found = [(task.key, _ready_since(view, task)) for task in pending]
    return [(key, since) for key, since in found if since is not None]


def _ready_since(view: RunView, task: Task) -> datetime | None:
    """When the last of what it depends on ended; None while something of that goes on."""
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


def pulse_json(pulse: Pulse, now: datetime) -> dict[str, Any]:
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
            for entry in pulse.schedulers
        ],
        "controls": [control_json(control) for control in pulse.controls],
        "unfinished": {status.value: number for status, number in pulse.counts.items()},
        "runs": [listed_run_json(run) for run in pulse.runs],
        "limits": [{"name": use.name, "slots": use.slots, "used": use.used} for use in pulse.limits],
        "waiting": pulse.waiting,
        "oldest_waiting": _moment_json(pulse.oldest_waiting, now),
        "slowest": _moment_json(pulse.slowest, now),
        "unsent_alerts": [unsent_json(each) for each in pulse.unsent],
        "quarantined": [quarantined_json(item) for item in pulse.quarantined],
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


def _moment_json(moment: Moment | None, now: datetime) -> dict[str, Any] | None:
    if moment is None:
        return None
    return {
        "run": moment.run,
        "task": str(moment.task),
        "since": time_json(moment.since),
        "seconds": round(max((now - moment.since).total_seconds(), 0.0), 3),
    }

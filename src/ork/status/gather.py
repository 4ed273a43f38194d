"""Reads everything `why` needs to know about a run at one moment."""

from __future__ import annotations

from datetime import datetime
from itertools import islice

from ork.model.ids import RunId, TaskKey
from ork.model.run import RunStatus
from ork.model.task import Attempt, TaskStatus
from ork.objects.local import LocalObjects
from ork.objects.store import ObjectStore
from ork.state.reading import StateReader
from ork.state.records import ALL_TASKS, RunFilter, TaskFilter
from ork.status.beats import last_beats, machines
from ork.status.follow import RunView, open_view
from ork.status.ids import Target, short_ids
from ork.status.people import waits_only_for_people
from ork.status.serving import NO_DEADLINE, NO_SCHEDULER, present_schedulers
from ork.status.snapshot import Snapshot
from ork.status.why import MAX_NAMES, MAX_TASKS, TOLD_OF


async def gather(store: StateReader, objects: ObjectStore, target: Target, run: RunId, now: datetime) -> Snapshot:
    view, _ = await open_view(store, run, await _needed_tasks(store, target, run))
    attempts = await _current_attempts(store, view, target)
    limits, active_runs = await store.limit_use(), await _active_runs(store, view)
    # Only as many as an answer names.
    holders = {key.run for use in limits if use.used >= use.slots for key in use.holders[:MAX_NAMES]}
    return Snapshot(
        view=view,
        now=now,
        schedulers=tuple(await present_schedulers(store, None)),
        owner=await store.get_owner(run),
        starter=await store.get_starter(run),
        attempts=attempts,
        beats=last_beats(objects, attempts),
        machines=machines(objects, attempts),
        limits=limits,
        commands=await store.pending_commands(run),
        active_runs=active_runs,
        short_ids=await short_ids(store, holders.union(active_runs[:MAX_NAMES])),
        is_disk_full=isinstance(objects, LocalObjects) and objects.is_full(),
        without_scheduler=await _without_scheduler(store, view),
    )


async def _without_scheduler(store: StateReader, view: RunView) -> str | None:
    """What it means for the run that no scheduler is running. A decision of a person carries it on by itself."""
    asked = await waits_only_for_people(store, view)
    if not asked:
        return NO_SCHEDULER
    return NO_DEADLINE if any(question.due is not None for question in asked) else None


async def _needed_tasks(store: StateReader, target: Target, run: RunId) -> TaskFilter:
    """What an answer about a run that has ended tells of is what did not go well: most of its tasks are none of that."""
    known = await store.get_run(run) if target.task is None else None
    return TaskFilter(statuses=frozenset(TOLD_OF)) if known is not None and known.status.is_final else ALL_TASKS


async def _current_attempts(store: StateReader, view: RunView, target: Target) -> dict[TaskKey, Attempt]:
    """Of those active tasks that an answer may tell of: a run may have as many attempts as it likes."""
    found: dict[TaskKey, Attempt] = {}
    for key in _told_of(view, target):
        attempts = await store.list_attempts(view.run.id, key)
        if attempts and not attempts[-1].status.is_final:
            found[key] = attempts[-1]
    return found


def _told_of(view: RunView, target: Target) -> list[TaskKey]:
    """The first whole tasks that are running, and that are dispatched; or the task asked about and its first instances."""
    found: list[TaskKey] = []
    for status in (TaskStatus.RUNNING, TaskStatus.DISPATCHED):
        active = (key for key in view.by_status[status] if _is_told_of(key, target))
        found += islice(active, MAX_TASKS + 1)
    return found


def _is_told_of(key: TaskKey, target: Target) -> bool:
    if target.task is None:
        return key.index is None
    return key.name == target.task and target.instance in (None, key.index)


async def _active_runs(store: StateReader, view: RunView) -> tuple[RunId, ...]:
    if view.run.status is not RunStatus.PENDING or view.version.workflow.max_active_runs is None:
        return ()
    active = frozenset({RunStatus.RUNNING, RunStatus.PAUSED})
    page = await store.list_runs(RunFilter(workflow=view.run.workflow, statuses=active, limit=100))
    return tuple(run.id for run in page.runs)

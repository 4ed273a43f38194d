"""Reads everything that `why` needs to know about a run."""

from __future__ import annotations

from datetime import datetime
from itertools import islice

from ork.model.ids import RunId, TaskKey
from ork.model.run import RunStatus
from ork.model.task import Attempt, TaskStatus
from ork.objects.attempt_documents import AttemptDocuments
from ork.objects.calls import DocumentCalls
from ork.state.reading import StateReader
from ork.state.records import RunFilter
from ork.status.approvals import may_wait_for_approval, only_pending_approvals
from ork.status.heartbeats import last_heartbeats, machines
from ork.status.ids import RunTarget, short_ids
from ork.status.launch_groups import waiting_groups
from ork.status.platform_notes import platform_notes
from ork.status.run_view import RunView, open_view
from ork.status.schedulers import NO_DEADLINE, NO_SCHEDULER, present_schedulers
from ork.status.snapshot import Snapshot
from ork.status.why import MAX_TASKS
from ork.status.why_task import MAX_NAMES
from ork.status.why_view import why_view


async def gather(
    store: StateReader, objects: AttemptDocuments, target: RunTarget, run: RunId, now: datetime
) -> Snapshot:
    """What an answer about the target needs to know."""
    calls = DocumentCalls(objects)
    view = await why_view(store, run, target)
    schedulers = tuple(await present_schedulers(store, None))
    attempts = await _current_attempts(store, view, target)
    limits, active_runs = await store.limit_use(), await _active_runs(store, view)
    # Only the holders that an answer names.
    holders = {key.run for use in limits if use.used >= use.slots for key in use.holders[:MAX_NAMES]}
    return Snapshot(
        view=view,
        now=now,
        schedulers=schedulers,
        owner=await store.get_owner(run),
        starter=await store.get_starter(run),
        attempts=attempts,
        beats=await calls.call(last_heartbeats, objects, attempts),
        groups=await waiting_groups(store, view, target.task),
        machines=await calls.call(machines, objects, attempts),
        platform_notes=await calls.call(platform_notes, objects, attempts),
        limits=limits,
        commands=await store.pending_commands(run),
        active_runs=active_runs,
        short_ids=await short_ids(store, holders.union(active_runs[:MAX_NAMES])),
        over_budget_at=None if view.version.workflow.budget is None else await store.over_budget_at(run),
        is_disk_full=await calls.call(objects.is_full),
        without_scheduler=NO_SCHEDULER if schedulers else await _without_scheduler(store, view),
    )


async def _without_scheduler(store: StateReader, view: RunView) -> str | None:
    """What to say if no scheduler is running; None if the run needs none, because approval itself advances it."""
    if not may_wait_for_approval(view):
        return NO_SCHEDULER
    whole, _ = await open_view(store, view.run.id)
    pending = await only_pending_approvals(store, whole)
    if not pending:
        return NO_SCHEDULER
    return NO_DEADLINE if any(approval.due is not None for approval in pending) else None


async def _current_attempts(store: StateReader, view: RunView, target: RunTarget) -> dict[TaskKey, Attempt]:
    """The current attempts of those active tasks that an answer may mention; a run can have any number of attempts."""
    found: dict[TaskKey, Attempt] = {}
    for key in _explained_tasks(view, target):
        attempts = await store.list_attempts(view.run.id, key)
        if attempts and not attempts[-1].status.is_final:
            found[key] = attempts[-1]
    return found


def _explained_tasks(view: RunView, target: RunTarget) -> list[TaskKey]:
    """The first running and dispatched tasks, or the requested task and its first instances."""
    found: list[TaskKey] = []
    for status in (TaskStatus.RUNNING, TaskStatus.DISPATCHED):
        active = (key for key in view.by_status[status] if _is_explained(key, target))
        found += islice(active, MAX_TASKS + 1)
    return found


def _is_explained(key: TaskKey, target: RunTarget) -> bool:
    if target.task is None:
        return key.index is None
    return key.name == target.task and target.instance in (None, key.index)


async def _active_runs(store: StateReader, view: RunView) -> tuple[RunId, ...]:
    if view.run.status is not RunStatus.PENDING or view.version.workflow.max_active_runs is None:
        return ()
    active = frozenset({RunStatus.RUNNING, RunStatus.PAUSED})
    page = await store.list_runs(RunFilter(workflow=view.run.workflow, statuses=active, limit=100))
    return tuple(run.id for run in page.runs)

"""Reads everything `why` needs to know about a run at one moment."""

from __future__ import annotations

from datetime import datetime

from ork.errors import ObjectsError
from ork.model.ids import RunId, TaskKey
from ork.model.run import RunStatus
from ork.model.task import Attempt
from ork.objects.documents import open_signed
from ork.objects.layout import attempt_folder, status_key
from ork.objects.store import ObjectStore
from ork.state.store import RunFilter, StateStore
from ork.status.follow import RunView, open_view
from ork.status.ids import short_ids
from ork.status.serving import live_schedulers
from ork.status.why import MAX_NAMES, Snapshot

MAX_BEATS = 20
STATUS_LIMIT = 1 << 20


async def gather(store: StateStore, objects: ObjectStore, run: RunId, now: datetime) -> Snapshot:
    view, _ = await open_view(store, run)
    attempts = await _current_attempts(store, view)
    limits, active_runs = await store.limit_use(), await _active_runs(store, view)
    # Only as many as an answer names.
    holders = {key.run for use in limits if use.used >= use.slots for key in use.holders[:MAX_NAMES]}
    return Snapshot(
        view=view,
        now=now,
        schedulers=tuple(await live_schedulers(store, None)),
        owner=await store.get_owner(run),
        attempts=attempts,
        beats=_beats(objects, attempts),
        limits=limits,
        commands=await store.pending_commands(run),
        active_runs=active_runs,
        short_ids=await short_ids(store, holders.union(active_runs[:MAX_NAMES])),
    )


async def _current_attempts(store: StateStore, view: RunView) -> dict[TaskKey, Attempt]:
    if not any(task.status.is_active for task in view.tasks.values()):
        return {}
    # In order of number: the last one of a task stays.
    newest = {attempt.key.task: attempt for attempt in await store.list_attempts(view.run.id)}
    return {key: attempt for key, attempt in newest.items() if not attempt.status.is_final}


def _beats(objects: ObjectStore, attempts: dict[TaskKey, Attempt]) -> dict[TaskKey, datetime]:
    """When each worker last wrote its status, by its own clock; unreadable documents tell nothing."""
    beats: dict[TaskKey, datetime] = {}
    for key, attempt in list(attempts.items())[:MAX_BEATS]:
        try:
            data = objects.get(status_key(attempt_folder(attempt.key)), limit=STATUS_LIMIT)
            if data is not None:
                beats[key] = datetime.fromisoformat(open_signed(data, attempt.token_hash)["at"])
        except (ObjectsError, KeyError, ValueError, TypeError):
            continue
    return beats


async def _active_runs(store: StateStore, view: RunView) -> tuple[RunId, ...]:
    if view.run.status is not RunStatus.PENDING or view.version.workflow.max_active_runs is None:
        return ()
    active = frozenset({RunStatus.RUNNING, RunStatus.PAUSED})
    page = await store.list_runs(RunFilter(workflow=view.run.workflow, statuses=active, limit=100))
    return tuple(run.id for run in page.runs)

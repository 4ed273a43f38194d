"""Checks whether a person may declare an attempt dead: refused with a reason while the attempt may be alive."""

from __future__ import annotations

from datetime import datetime

from ork.errors import RefusedError
from ork.model.ids import TaskKey
from ork.model.task import Attempt, GiveUp
from ork.objects.attempt_documents import AttemptDocuments
from ork.objects.calls import DocumentCalls
from ork.state.reading import StateReader
from ork.status.heartbeats import last_heartbeats
from ork.status.run_view import RunView
from ork.status.schedulers import present_schedulers

# Given up for lack of heartbeats: the owner has already decided that by its own clock.
_SILENT = (GiveUp.STALE, GiveUp.DECLARED_DEAD)


async def check_declared_dead(
    store: StateReader, objects: AttemptDocuments, view: RunView, key: TaskKey, now: datetime, stale_seconds: float
) -> None:
    """RefusedError if the task has no active attempt, or the attempt may be alive. The store refuses final runs."""
    if view.run.status.is_final:
        return
    hint = f"ork why {view.short} {key}"
    attempts = await store.list_attempts(view.run.id, key)
    current = attempts[-1] if attempts else None
    if current is None or current.status.is_final:
        raise RefusedError(f"`{key}` has no running attempt: it is {view.tasks[key].status.value}", hint=hint)
    if current.waits_for is not None:
        raise RefusedError(f"`{key}` has no worker: it waits for an external job", hint=f"ork cancel {view.short}")
    age = await DocumentCalls(objects).call(_age, objects, key, current, now)
    if age is not None and age < stale_seconds and current.closing not in _SILENT:
        message = f"`{key}` is alive: its worker wrote a heartbeat {age:.0f} s ago"
        raise RefusedError(message, hint=f"`ork cancel {view.short}` stops it")
    if (
        current.closing is None
        and age is not None
        and age >= stale_seconds
        and not await present_schedulers(store, None)
    ):
        message = (
            f"the worker of `{key}` has been silent for {age:.0f} s, but no scheduler has checked it and given it up"
        )
        raise RefusedError(message, hint=f"start `ork scheduler`, or `ork cancel {view.short}`; then try again")
    if current.closing is None:
        message = f"`{key}` has not been given up: that happens after {stale_seconds:g} s without a heartbeat"
        raise RefusedError(message, hint=hint)


def _age(objects: AttemptDocuments, key: TaskKey, attempt: Attempt, now: datetime) -> float | None:
    """Seconds since the worker last wrote its status (its clock against ours); None if it never did."""
    beat = last_heartbeats(objects, {key: attempt}).get(key)
    return None if beat is None else max(0.0, (now - beat).total_seconds())

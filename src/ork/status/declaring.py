"""Whether a person may declare an attempt dead: refused with a reason while it can be seen to live."""

from __future__ import annotations

from datetime import datetime

from ork.errors import RefusedError
from ork.model.ids import TaskKey
from ork.model.task import Attempt, GiveUp
from ork.objects.store import ObjectStore
from ork.state.reading import StateReader
from ork.status.beats import last_beats
from ork.status.follow import RunView
from ork.status.serving import present_schedulers

# Given up for want of a heartbeat: the owner has judged that already, by its own clock.
_SILENT = (GiveUp.STALE, GiveUp.DECLARED_DEAD)


async def check_declared_dead(
    store: StateReader, objects: ObjectStore, view: RunView, key: TaskKey, now: datetime, stale_seconds: float
) -> None:
    """RefusedError if nothing of the task is active, or if it may well be alive. A final run is refused by the store."""
    if view.run.status.is_final:
        return
    hint = f"ork why {view.short} {key}"
    attempts = await store.list_attempts(view.run.id, key)
    current = attempts[-1] if attempts else None
    if current is None or current.status.is_final:
        raise RefusedError(f"nothing of `{key}` is running: it is {view.tasks[key].status.value}", hint=hint)
    if current.waits_for is not None:
        raise RefusedError(f"`{key}` has no worker: it waits for a job outside", hint=f"ork cancel {view.short}")
    age = _age(objects, key, current, now)
    if age is not None and age < stale_seconds and current.closing not in _SILENT:
        message = f"`{key}` is alive: its worker wrote a heartbeat {age:.0f} s ago"
        raise RefusedError(message, hint=f"`ork cancel {view.short}` stops it")
    if (
        current.closing is None
        and age is not None
        and age >= stale_seconds
        and not await present_schedulers(store, None)
    ):
        message = f"`{key}` is silent for {age:.0f} s, but no scheduler has looked at it and given it up"
        raise RefusedError(message, hint=f"start `ork scheduler`, or `ork cancel {view.short}`; then ask again")
    if current.closing is None:
        message = f"`{key}` has not been given up: that happens after {stale_seconds:g} s without a heartbeat"
        raise RefusedError(message, hint=hint)


def _age(objects: ObjectStore, key: TaskKey, attempt: Attempt, now: datetime) -> float | None:
    """Seconds since its worker last wrote its status, by the two clocks; None if it has not."""
    beat = last_beats(objects, {key: attempt}).get(key)
    return None if beat is None else max(0.0, (now - beat).total_seconds())

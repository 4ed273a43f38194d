"""Describes workers that stopped writing heartbeats: what happens to their attempts, when, and what a person can do."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from ork.model.external_names import is_fenced, machine_of
from ork.model.platforms import FENCE_SECONDS, is_on_platform
from ork.model.record import replaced
from ork.model.task import Attempt, GiveUp, Task, TaskStatus
from ork.model.workflow import CloudRunJob, Container, OnUnreachable
from ork.objects.attempt_documents import AttemptDocuments
from ork.objects.calls import DocumentCalls
from ork.state.reading import StateReader
from ork.status.formatting import ago, argument, clock_time
from ork.status.heartbeats import last_heartbeats, machines
from ork.status.run_view import is_group
from ork.status.snapshot import Snapshot

# A worker that missed this many heartbeats is reported as silent, long before it is given up.
MISSED_BEATS = 2.5
# After this long, an executor that can reach an attempt has stopped it or begun to.
STOP_SECONDS = 3.0

_GIVEN_UP = {
    GiveUp.STALE: "its worker fell silent (lost)",
    GiveUp.NOT_STARTED: "it did not start in time",
    GiveUp.VANISHED: "its process is gone and left no result (lost)",
    GiveUp.TIMEOUT: "it took too long",
    GiveUp.CANCEL: "the run is being cancelled",
    GiveUp.DECLARED_DEAD: "a person declared it dead",
}


def heartbeat_text(snap: Snapshot, age: float) -> str:
    if age <= snap.heartbeat_seconds * MISSED_BEATS:
        return f"; last heartbeat {max(age, 0):.0f} s ago"
    if age < snap.stale_seconds:
        return f"; worker silent for {age:.0f} s, given up at {snap.stale_seconds:g} s"
    then = "the scheduler gives it up soon" if snap.schedulers else "it is given up only when a scheduler runs"
    return f"; worker silent for {age:.0f} s, longer than the limit of {snap.stale_seconds:g} s: {then}"


def closing_text(snap: Snapshot, task: Task) -> str | None:
    """Describes an attempt that is being given up; None for any other."""
    attempt = snap.attempts.get(task.key)
    if attempt is None or attempt.closing is None:
        return None
    text = f"being given up since {ago(attempt.closing_since, snap.now)}: {_GIVEN_UP[attempt.closing]}"
    if not _is_silent(snap, attempt):
        return f"{text}; its remaining processes are being stopped"
    return f"{text}; {_unreachable(snap, task, attempt)}"


def closing_end(snap: Snapshot, task: Task) -> datetime | None:
    """When an attempt whose machine does not respond counts as over; None if it is not known."""
    attempt = snap.attempts.get(task.key)
    if attempt is None or not _is_silent(snap, attempt):
        return None
    return _over_at(snap, task, attempt)


class UnreachableTasks(NamedTuple):
    """The tasks that a run being cancelled still waits for, one line each. `is_endless`: until a person intervenes."""

    lines: list[str]
    is_endless: bool


async def unreachable_tasks(store: StateReader, objects: AttemptDocuments, snap: Snapshot) -> UnreachableTasks | None:
    """None unless the run is being cancelled and waits only for machines that do not respond."""
    since, run = snap.view.run.cancel_requested_at, snap.view.run
    if since is None or run.status.is_final or (snap.now - since).total_seconds() < STOP_SECONDS:
        return None
    if await store.pending_commands(run.id):
        return None
    lines: list[str] = []
    is_endless, calls = True, DocumentCalls(objects)
    active = [snap.view.by_status[status] for status in (TaskStatus.RUNNING, TaskStatus.DISPATCHED)]
    for key, task in [item for tasks in active for item in tasks.items() if not is_group(item[1])]:
        attempts = await store.list_attempts(run.id, key)
        if not attempts or attempts[-1].closing in (None, GiveUp.DECLARED_DEAD):
            return None
        current = {key: attempts[-1]}
        beats = await calls.call(last_heartbeats, objects, current)
        known = replaced(snap, beats=beats, machines=await calls.call(machines, objects, current))
        if not _is_silent(known, attempts[-1]):
            return None
        is_endless = is_endless and _over_at(known, task, attempts[-1]) is None
        lines.append(f"{key}: {_unreachable(known, task, attempts[-1])}")
    return UnreachableTasks(lines, is_endless) if lines else None


def _is_silent(snap: Snapshot, attempt: Attempt) -> bool:
    """Whether the attempt is being given up and its worker does not respond. A worker that responds ends soon."""
    if attempt.waits_for is not None or attempt.closing_since is None:
        return False
    limit = snap.heartbeat_seconds * MISSED_BEATS
    closing = (snap.now - attempt.closing_since).total_seconds()
    beat = snap.beats.get(attempt.key.task)
    if beat is None:
        return closing >= limit
    return closing >= STOP_SECONDS and (snap.now - beat).total_seconds() >= limit


def _over_at(snap: Snapshot, task: Task, attempt: Attempt) -> datetime | None:
    """When the attempt counts as ended without a response; None if a person has to declare it dead."""
    spec = snap.view.specs.get(task.key.name)
    is_plain = spec is not None and isinstance(spec.action, Container | CloudRunJob)
    waits = spec is not None and spec.on_unreachable is OnUnreachable.WAIT
    if waits or is_plain or not is_fenced(attempt.external_name):
        return None
    fence = max(snap.fence_seconds, FENCE_SECONDS) if is_on_platform(attempt.executor) else snap.fence_seconds
    since = snap.beats.get(task.key) or attempt.closing_since or snap.now
    return since + timedelta(seconds=snap.stale_seconds + fence)


def _unreachable(snap: Snapshot, task: Task, attempt: Attempt) -> str:
    """How long the scheduler waits for a machine that does not respond, and what a person can do."""
    machine = snap.machines.get(task.key) or machine_of(attempt.external_name)
    where = f"machine {machine}" if machine else "its machine"
    declare = f"`ork declare-dead {snap.view.short} {argument(task.key)}` if you know that it is over"
    spec, over = snap.view.specs.get(task.key.name), _over_at(snap, task, attempt)
    if over is not None:
        return f"if {where} does not answer, {_counts_as_over(snap, over)}; {declare}"
    if spec is not None and spec.on_unreachable is OnUnreachable.WAIT:
        return f"if {where} does not answer, it is waited for (on_unreachable: wait); {declare}"
    return f"if {where} does not answer, it is waited for, since nothing else ends it; {declare}"


def _counts_as_over(snap: Snapshot, over: datetime) -> str:
    if over > snap.now:
        return f"it counts as over at {clock_time(over, snap.now)}"
    return "the scheduler ends it soon" if snap.schedulers else "it counts as over when a scheduler looks at it"

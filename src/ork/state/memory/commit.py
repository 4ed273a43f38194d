"""Writes the changes of a commit; each run is protected by its epoch."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from ork.core.launch_groups import granted
from ork.model.ids import RunId, SchedulerId
from ork.model.notice import NoticeKind
from ork.model.record import replaced
from ork.model.run import RunStatus
from ork.model.task import Attempt, Task
from ork.state.admission import LaunchRates, admit, room_left
from ork.state.memory.rows import RunRow, Shared
from ork.state.records import Committed, RunChanges
from ork.state.refusals import ends_unaware_of_cancel


def write_changes(
    state: Shared, scheduler: SchedulerId, changes: Sequence[RunChanges], clock: float, now: datetime
) -> Committed:
    fenced: set[RunId] = set()
    overruled: set[RunId] = set()
    opened: list[tuple[RunRow, RunChanges]] = []
    for of_run in changes:
        row = state.runs.get(of_run.run_id)
        if row is None or row.owner != scheduler or row.epoch != of_run.epoch:
            fenced.add(of_run.run_id)
        elif not row.run.status.is_final and ends_unaware_of_cancel(of_run.run) and state.cancel_waits(of_run.run_id):
            overruled.add(of_run.run_id)
        else:
            opened.append((row, of_run))
    for row, of_run in opened:
        if not of_run.only_launches:
            _write(state, row, of_run)
            _raise_notices(state, row, of_run, now)
    launches = [(row, request) for row, of_run in opened for request in of_run.launches]
    rates = LaunchRates(state.rates, lambda name, rate: state.open_bucket(name, rate, clock))
    admission = admit([request for _, request in launches], room_left(state.limits, state.active()), rates)
    state.buckets |= {name: (bucket.tokens, clock) for name, bucket in admission.buckets.items()}
    admitted = [launches[place] for place in sorted(admission.admitted)]
    for row, request in admitted:
        row.changed = state.changed
        _write_rows(state, row, (request.task,), (granted(request.attempt, admission.parallelism),))
    for row, of_run in opened:
        if of_run.release_ownership:
            row.owner = None
    keys = frozenset(request.attempt.key for _, request in admitted)
    return Committed(
        frozenset(fenced), frozenset(overruled), keys, admission.full, admission.again_in, admission.parallelism
    )


def _write(state: Shared, row: RunRow, changes: RunChanges) -> None:
    # First: finishing a cancel of an earlier round must not mark the row written below as cancelled.
    for command in changes.commands_done:
        if command in state.commands and state.commands[command].run == changes.run_id:
            del state.commands[command]
    if changes.run is not None:
        # A cancel submitted while the owner was deciding is kept, even though the row was written without it.
        keeps = changes.run.cancel_requested_at is None and state.cancel_waits(changes.run_id)
        standing = row.run.cancel_requested_at
        row.run = replaced(changes.run, cancel_requested_at=standing) if keeps else changes.run
    row.changed = state.changed
    row.alerts += [alert for alert in changes.alerts if alert.kind in (NoticeKind.TASK, NoticeKind.RUN)]
    _write_rows(state, row, changes.tasks, changes.attempts)


def _raise_notices(state: Shared, row: RunRow, changes: RunChanges, now: datetime) -> None:
    run = row.run
    for alert in changes.alerts:
        state.raise_notice(alert.kind, run.workflow, now, run=run.id, task=alert.task, failure=alert.failure)
    if changes.run is None or run.status is not RunStatus.SUCCESS:
        return
    ended = (RunStatus.SUCCESS, RunStatus.FAILED)
    earlier = [
        other.run
        for other in state.runs.values()
        if other.run.workflow == run.workflow
        and other.run.status in ended
        and (other.run.created_at, other.run.id) < (run.created_at, run.id)
    ]
    before = max(earlier, key=lambda other: (other.created_at, other.id), default=None)
    had_failed = any(row.notice.run == run.id and row.notice.kind is NoticeKind.RUN for row in state.notices)
    if had_failed or (before is not None and before.status is RunStatus.FAILED):
        state.raise_notice(NoticeKind.RECOVERY, run.workflow, now, run=run.id)


def came_to_nothing(changes: Sequence[RunChanges], committed: Committed) -> bool:
    lost = committed.fenced | committed.overruled
    return not committed.admitted and all(of_run.only_launches or of_run.run_id in lost for of_run in changes)


def _write_rows(state: Shared, row: RunRow, tasks: Sequence[Task], attempts: Sequence[Attempt]) -> None:
    for task in tasks:
        row.tasks[task.key] = task
        row.task_changed[task.key] = state.changed
    for attempt in attempts:
        row.attempts[attempt.key.task, attempt.key.number] = attempt

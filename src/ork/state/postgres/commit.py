"""Writes everything that a scheduler step decided in one request; each run is protected by its epoch. The work is done
by the SQL function `ork.commit_step`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import asyncpg

from ork.core.effects import LaunchRequest
from ork.core.limits import limit_names
from ork.model.ids import RunId, SchedulerId, TaskKey
from ork.model.run import RunStatus
from ork.model.task import Attempt, InlineOutput, Task, TaskStatus
from ork.state.postgres.connection import Row
from ork.state.postgres.database import Database
from ork.state.postgres.rows import attempt_row, run_values, task_row
from ork.state.records import Committed, RunChanges
from ork.state.refusals import ends_unaware_of_cancel
from ork.state.rows import NO_INDEX, Columns, failure_text, index_number, is_plain_attempt, is_plain_progress, number_of

_DUPLICATE = "23505"
_NOT_THERE = "ORK02"


async def commit(db: Database, scheduler: SchedulerId, changes: Sequence[RunChanges], now: datetime) -> Committed:
    """Commit the changes. Repeats the request without the runs that were refused, and with whole rows if partial
    updates do not match the stored rows; in both cases the request before wrote nothing."""
    orders = await db.orders_of_runs([of_run.run_id for of_run in changes])
    fenced = {of_run.run_id for of_run in changes if of_run.run_id not in orders}  # there is no such run
    overruled: set[RunId] = set()
    rows_of = partial_progress
    while shares := [Share(c, orders[c.run_id]) for c in changes if c.run_id not in fenced | overruled]:
        launches = _by_priority(shares)
        arguments = _arguments(shares, rows_of(shares, launches), launches, now)
        try:
            answer = (await db.rows("commit_step", scheduler, *arguments, db.moment(), *db.sender))[0]
        except asyncpg.PostgresError as error:
            if error.sqlstate not in (_DUPLICATE, _NOT_THERE) or rows_of is whole_progress:
                raise
            rows_of = whole_progress
            continue
        db.own_changes += answer["told"]
        if not answer["fenced"] and not answer["overruled"]:
            return _committed(answer, launches, fenced, overruled)
        fenced.update(answer["fenced"] or ())
        overruled.update(answer["overruled"] or ())
    return Committed(frozenset(fenced), frozenset(overruled))


def _committed(
    answer: Row, launches: Sequence[tuple[Share, LaunchRequest]], fenced: set[RunId], overruled: set[RunId]
) -> Committed:
    attempts = [launches[place - 1][1].attempt for place in answer["admitted"] or ()]
    admitted = frozenset(attempt.key for attempt in attempts)
    full = frozenset(answer["exhausted"] or ())
    given = zip(attempts, answer["granted"] or (), strict=False)
    parallelism = {attempt.group.id: slots for attempt, slots in given if attempt.group is not None}
    return Committed(frozenset(fenced), frozenset(overruled), admitted, full, answer["again_in"], parallelism)


def _by_priority(shares: Sequence[Share]) -> list[tuple[Share, LaunchRequest]]:
    launches = [(share, request) for share in shares for request in share.changes.launches]
    launches.sort(key=lambda each: -each[1].priority)
    return launches


def _arguments(
    shares: Sequence[Share], progress: RowChanges, launches: Sequence[tuple[Share, LaunchRequest]], now: datetime
) -> tuple[Any, ...]:
    """The arguments of `ork.commit_step` in order. Empty ones are sent as NULL, and their statements are not run."""
    changes = [share.changes for share in shares]
    done = [(number_of(command), of_run.run_id) for of_run in changes for command in of_run.commands_done]
    unaware = [of_run.run_id for of_run in changes if ends_unaware_of_cancel(of_run.run)]
    succeeded = [of_run.run_id for of_run in changes if of_run.run and of_run.run.status is RunStatus.SUCCESS]
    return (
        [of_run.run_id for of_run in changes],
        [of_run.epoch for of_run in changes],
        unaware or None,
        [(of_run.release_ownership, *run_values(of_run.run).values()) for of_run in changes if of_run.run is not None]
        or None,
        [(of_run.run_id, of_run.release_ownership, of_run.only_launches) for of_run in changes if of_run.run is None]
        or None,
        progress.tasks or None,
        progress.attempts or None,
        progress.added or None,
        progress.moved or None,
        [command for command, _ in done] or None,
        [run for _, run in done] or None,
        progress.launched_tasks or None,
        progress.launched_attempts or None,
        _groups(launches),
        *_counted_against(launches),
        [alert for of_run in changes for alert in _alert_rows(of_run)] or None,
        succeeded or None,
        now,
    )


def _groups(launches: Sequence[tuple[Share, LaunchRequest]]) -> list[Columns | None] | None:
    """The group of each launch; None if no launch has a group."""
    groups = [request.attempt.group for _, request in launches]
    if not any(groups):
        return None
    return [None if group is None else (group.id, group.index, group.parallelism) for group in groups]


def _counted_against(launches: Sequence[tuple[Share, LaunchRequest]]) -> tuple[Any, ...]:
    """The limits that launches count against, and the rates of their tasks."""
    if not launches:
        return None, None
    kinds = {(request.attempt.executor, request.attempt.pool) for _, request in launches}
    has_rates = any(request.rate or request.attempt.pool for _, request in launches)
    return (
        sorted({name for kind in kinds for name in limit_names(*kind)}),
        [_rate(request) for _, request in launches] if has_rates else None,
    )


def _rate(request: LaunchRequest) -> Columns | None:
    if request.rate is None:
        return None
    name, rate = request.rate
    return name, rate.count, rate.seconds


def _alert_rows(changes: RunChanges) -> list[Columns]:
    rows: list[Columns] = []
    for alert in changes.alerts:
        place = (None, None) if alert.task is None else (alert.task.name, index_number(alert.task.index))
        rows.append((alert.kind.value, changes.run_id, *place, failure_text(alert.failure)))
    return rows


_LATER = 0  # placeholder: the number of the change is assigned when all runs of the commit are locked


class Share(NamedTuple):
    """One run's changes, and the position of each task in its workflow."""

    changes: RunChanges
    order: dict[str, int]


class RowChanges(NamedTuple):
    """The rows for `ork.commit_step`: whole tasks and attempts, new tasks, tasks that changed together with their
    attempt, and launches (with tasks if those are written whole)."""

    tasks: list[Columns]
    attempts: list[Columns]
    added: list[Columns]
    moved: list[Columns]
    launched_tasks: list[Columns]
    launched_attempts: list[Columns]


def whole_progress(shares: Sequence[Share], launches: Sequence[tuple[Share, LaunchRequest]]) -> RowChanges:
    """Whole rows only, which match any stored state."""
    tasks = [_task_row(share, task) for share in shares for task in _tasks(share)]
    attempts = [_attempt_row(share, attempt) for share in shares for attempt in _attempts(share)]
    launched_tasks = [_task_row(share, request.task) for share, request in launches]
    return RowChanges(tasks, attempts, [], [], launched_tasks, _launched_attempts(launches))


def partial_progress(shares: Sequence[Share], launches: Sequence[tuple[Share, LaunchRequest]]) -> RowChanges:
    """Partial updates where possible. Assumes that new tasks are not in the store yet, and that updated rows are in
    their previous state there."""
    progress = RowChanges([], [], [], [], [], _launched_attempts(launches))
    for share in shares:
        _add_share(progress, share)
    return progress


def _add_share(progress: RowChanges, share: Share) -> None:
    moving: dict[TaskKey, Attempt] = {}
    for attempt in _attempts(share):
        if is_plain_attempt(attempt) and attempt.key.task not in moving:
            moving[attempt.key.task] = attempt
        else:
            progress.attempts.append(_attempt_row(share, attempt))
    for task in _tasks(share):
        attempt_of = moving.get(task.key)
        if attempt_of is not None and is_plain_progress(task) and _agree(task, attempt_of):
            progress.moved.append(_moved(share, task, attempt_of))
            del moving[task.key]
        elif _looks_new(task):
            progress.added.append(_task_row(share, task))
        else:
            progress.tasks.append(_task_row(share, task))
    progress.attempts.extend(_attempt_row(share, attempt) for attempt in moving.values())


def _tasks(share: Share) -> Collection[Task]:
    """The tasks to write. One statement cannot write a row twice, so the last one of each key is used."""
    return {task.key: task for task in share.changes.tasks}.values()


def _attempts(share: Share) -> Collection[Attempt]:
    return {attempt.key: attempt for attempt in share.changes.attempts}.values()


def _looks_new(task: Task) -> bool:
    return task.status is TaskStatus.PENDING and task.attempt == 0 and task.cache_key is None and task.retry_at is None


def _agree(task: Task, attempt: Attempt) -> bool:
    return (
        task.attempt == attempt.key.number
        and task.status._value_ == attempt.status._value_
        and task.started_at == attempt.started_at
        and task.finished_at == attempt.finished_at
        and task.exit_code == attempt.exit_code
    )


def _moved(share: Share, task: Task, attempt: Attempt) -> Columns:
    (name, index), output = task.key, task.output
    began, over, seen = task.started_at, task.finished_at, attempt.seen_at
    return (
        share.changes.run_id, share.order[name], NO_INDEX if index is None else index, task.attempt, task.status._value_,
        None if began is None else began.timestamp(), None if over is None else over.timestamp(), task.exit_code,
        output.json if isinstance(output, InlineOutput) else None, attempt.pool, attempt.seq,
        None if seen is None else seen.timestamp(),
    )  # fmt: skip


def _task_row(share: Share, task: Task) -> Columns:
    return task_row(share.changes.run_id, share.order[task.key.name], _LATER, task)


def _attempt_row(share: Share, attempt: Attempt) -> Columns:
    return attempt_row(share.order[attempt.key.task.name], attempt)


def _launched_attempts(launches: Sequence[tuple[Share, LaunchRequest]]) -> list[Columns]:
    return [_attempt_row(share, request.attempt) for share, request in launches]

"""One request for all that a step decided, each run behind its fence. What happens to it is in `ork.commit_step`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import asyncpg

from ork.core.effects import LaunchRequest
from ork.core.limits import limit_names
from ork.model.ids import RunId, SchedulerId
from ork.model.run import RunStatus
from ork.state.marks import number_of
from ork.state.postgres.connection import Row
from ork.state.postgres.database import Database
from ork.state.postgres.progress import Progress, Share, partial_progress, whole_progress
from ork.state.postgres.rows import run_values
from ork.state.records import Committed, RunChanges
from ork.state.refusals import ends_unaware_of_cancel
from ork.state.rows import Columns, failure_text, index_number

_DUPLICATE = "23505"
_NOT_THERE = "ORK02"


async def commit(db: Database, scheduler: SchedulerId, changes: Sequence[RunChanges], now: datetime) -> Committed:
    """Tries again without the runs that were refused, and with whole rows where partial updates do not fit what the store
    holds: in both cases nothing was written at all."""
    orders = await db.orders_of_runs([of_run.run_id for of_run in changes])
    fenced = {of_run.run_id for of_run in changes if of_run.run_id not in orders}  # there is no such run
    overruled: set[RunId] = set()
    rows_of = partial_progress
    while shares := [Share(c, orders[c.run_id]) for c in changes if c.run_id not in fenced | overruled]:
        launches = _by_priority(shares)
        arguments = _arguments(shares, rows_of(shares, launches), launches, now)
        try:
            answer = (await db.rows("commit_step", scheduler, *arguments, db.moment(), *db.voice))[0]
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
    admitted = frozenset(launches[place - 1][1].attempt.key for place in answer["admitted"] or ())
    full = frozenset(answer["exhausted"] or ())
    return Committed(frozenset(fenced), frozenset(overruled), admitted, full, answer["again_in"])


def _by_priority(shares: Sequence[Share]) -> list[tuple[Share, LaunchRequest]]:
    launches = [(share, request) for share in shares for request in share.changes.launches]
    launches.sort(key=lambda each: -each[1].priority)
    return launches


def _arguments(
    shares: Sequence[Share], progress: Progress, launches: Sequence[tuple[Share, LaunchRequest]], now: datetime
) -> tuple[Any, ...]:
    """Those of `ork.commit_step`, in its order. What is empty is not sent, and the statements for it are not run."""
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
        *_counted_against(launches),
        [alert for of_run in changes for alert in _alert_rows(of_run)] or None,
        succeeded or None,
        now,
    )


def _counted_against(launches: Sequence[tuple[Share, LaunchRequest]]) -> tuple[Any, ...]:
    """The limits that launches count against, and their tasks' own rates."""
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

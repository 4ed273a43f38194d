"""Writes everything that a scheduler step decided in one transaction; each run is protected by its epoch.

Rows of tasks and attempts are written by partial updates where only progress has to be written. If a partial update does not
match the stored rows, all rows are written whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import NamedTuple, TypeAlias

from ork.core.effects import LaunchRequest
from ork.errors import UnreadableError
from ork.model.ids import RunId, SchedulerId
from ork.model.run import RunStatus
from ork.model.task import Attempt, AttemptStatus, InlineOutput, Task, TaskStatus
from ork.model.workflow import Rate
from ork.state.admission import ActiveAttempts, Admission, LaunchRates, TokenBucket, admit, admit_all, room_left
from ork.state.records import Committed, RunChanges
from ork.state.refusals import ends_unaware_of_cancel
from ork.state.rows import is_new, is_plain_attempt, is_plain_progress, number_of
from ork.state.sqlite.connection import NULL, Connection, Row
from ork.state.sqlite.database import Database
from ork.state.sqlite.rows import NO_INDEX, attempt_row, failure_text, index_number, run_values, task_row, time_text

_ALWAYS_OWNED = (RunStatus.PENDING, RunStatus.RUNNING)


class _Open(NamedTuple):
    """The changes of a run whose epoch is valid, the order of its tasks, and the status that the run will have."""

    changes: RunChanges
    order: dict[str, int]
    status: str


def commit(db: Database, scheduler: SchedulerId, changes: Sequence[RunChanges], now: datetime) -> Committed:
    if not changes:
        return Committed()
    fenced: set[RunId] = set()
    overruled: set[RunId] = set()
    with suppress(_CameToNothing), db.changing() as changed:
        opened = []
        for of_run in changes:
            fence = _pass_fence(db, scheduler, of_run, changed)
            if fence is not None:
                opened.append(fence)
            else:
                (overruled if _is_owned(db, scheduler, of_run) else fenced).add(of_run.run_id)
        _write(db, opened, changed, time_text(now))
        launches = [request for of_run in opened for request in of_run.changes.launches]
        admission = _admit(db, launches)
        admitted = [launches[place] for place in sorted(admission.admitted)]
        if not admitted and all(of_run.changes.only_launches for of_run in opened):
            raise _CameToNothing
        orders = {of_run.changes.run_id: of_run.order for of_run in opened}
        write_launches(db.connection, admitted, orders, changed)
        if admission.parallelism:
            write_groups(db.connection, admitted, orders, admission.parallelism)
        _settle(db, opened)
    keys = frozenset([request.attempt.key for request in admitted])
    return Committed(
        frozenset(fenced), frozenset(overruled), keys, admission.full, admission.again_in, admission.parallelism
    )


class _CameToNothing(Exception):  # noqa: N818 (not an error: it rolls back, so that no one is woken)
    pass


def _pass_fence(db: Database, scheduler: SchedulerId, changes: RunChanges, changed: int) -> _Open | None:
    run = changes.run
    touched = db.connection.run(
        "touch_run",
        {
            "run": changes.run_id,
            "owner": scheduler,
            "epoch": changes.epoch,
            "unaware": int(ends_unaware_of_cancel(run)),
            "changed": changed,
        },
    )
    if not touched:
        return None
    [(version, status)] = db.connection.rows("touched_run", (changes.run_id,))
    try:
        return _Open(changes, db.order(version), status if run is None else run.status)
    except UnreadableError:
        return None  # fenced: the next claim quarantines it


def _is_owned(db: Database, scheduler: SchedulerId, changes: RunChanges) -> bool:
    asked = {"run": changes.run_id, "owner": scheduler, "epoch": changes.epoch}
    return db.connection.row("is_owned", asked) is not None


def _write(db: Database, opened: Sequence[_Open], changed: int, now: str | None) -> None:
    """Write everything except the launches. This comes first, because attempts that end here free slots for them."""
    # Before the runs: finishing a cancel of an earlier round must not mark the row written below as cancelled.
    done = [(now, number_of(command), changes.run_id) for changes, _, _ in opened for command in changes.commands_done]
    db.connection.run_many("finish_command", done)
    for changes, _, _ in opened:
        if changes.run is not None:
            db.connection.run("write_run", run_values(changes.run))
    rows = [RowChanges(changes.run_id, order, changes.tasks, changes.attempts) for changes, order, _ in opened]
    write_tasks(db.connection, rows, changed)
    write_attempts(db.connection, rows)
    for changes, _, _ in opened:
        _write_notices(db, changes, now)


def _write_notices(db: Database, changes: RunChanges, now: str | None) -> None:
    for alert in changes.alerts:
        task, idx = (None, None) if alert.task is None else (alert.task.name, index_number(alert.task.index))
        about = {"task": task, "idx": idx, "failure": failure_text(alert.failure)}
        db.connection.run("write_alert", {"run": changes.run_id, "kind": alert.kind.value, "now": now, **about})
    run = changes.run
    if run is not None and run.status is RunStatus.SUCCESS:
        before = {"workflow": run.workflow, "created_at": time_text(run.created_at)}
        db.connection.run("add_recovery", {"run": run.id, "now": now, **before})


def _admit(db: Database, launches: Sequence[LaunchRequest]) -> Admission:
    """Decide which launches fit. The write lock is held, so the next commit counts what is admitted here."""
    limits: dict[str, int] = dict(db.connection.rows("list_limits")) if launches else {}
    rated = [request for request in launches if request.rate is not None or request.attempt.pool is not None]
    if not limits and not rated:
        return admit_all(launches)
    pools = {name: Rate(count, seconds) for name, count, seconds in db.connection.rows("list_rates")} if rated else {}
    active = (ActiveAttempts(*row) for row in db.connection.rows("count_active")) if limits else ()
    admission = admit(launches, room_left(limits, active), LaunchRates(pools, partial(_open_bucket, db)))
    boot, at = db.clock()
    drawn_from = [(name, bucket.tokens, boot, at) for name, bucket in sorted(admission.buckets.items())]
    db.connection.run_many("write_bucket", drawn_from)
    return admission


def _open_bucket(db: Database, name: str, rate: Rate) -> TokenBucket:
    """The bucket of a rate. It is full if it was never used, or if the machine was restarted since, which resets the
    clock."""
    row = db.connection.row("get_bucket", (name,))
    boot, now = db.clock()
    if row is None or row[1] != boot:
        return TokenBucket(rate, rate.count, 0.0)
    return TokenBucket(rate, row[0], now - row[2])


def _settle(db: Database, opened: Iterable[_Open]) -> None:
    for changes, _, status in opened:
        if changes.release_ownership or status not in _ALWAYS_OWNED:
            db.connection.run("settle_run", {"run": changes.run_id, "release": int(changes.release_ownership)})


Order: TypeAlias = Mapping[str, int]
"""Each task's place in its workflow."""


class RowChanges(NamedTuple):
    """The changed tasks and attempts of one run."""

    run: RunId
    order: Order
    tasks: Sequence[Task]
    attempts: Sequence[Attempt]


def write_tasks(connection: Connection, changes: Sequence[RowChanges], changed: int) -> None:
    added: list[Row] = []
    started: list[Row] = []
    succeeded: list[Row] = []
    whole: list[Row] = []
    for run, order, tasks, _ in changes:
        for task in tasks:
            name, index = task.key
            ordinal, idx = order[name], NO_INDEX if index is None else index
            if is_new(task):
                item = NULL if task.item is None else task.item
                added.append((run, ordinal, idx, name, task.executor, item, changed))
                continue
            if not is_plain_progress(task):
                whole.append(task_row(run, ordinal, changed, task))
                continue
            began = time_text(task.started_at)
            if task.status is TaskStatus.RUNNING:
                started.append((began, changed, run, ordinal, idx, task.attempt))
            else:
                ended, output = time_text(task.finished_at), task.output
                text = output.json if isinstance(output, InlineOutput) else NULL
                succeeded.append((began, ended, task.exit_code, text, changed, run, ordinal, idx, task.attempt))
    if not _fit(connection, ("add_task", added), ("start_task", started), ("finish_task", succeeded)):
        whole = [task_row(run, order[t.key.name], changed, t) for run, order, tasks, _ in changes for t in tasks]
    connection.run_many("write_task", whole)


def write_attempts(connection: Connection, changes: Sequence[RowChanges]) -> None:
    started: list[Row] = []
    succeeded: list[Row] = []
    whole: list[Row] = []
    for _, order, _, attempts in changes:
        for attempt in attempts:
            run, (name, index), number = attempt.key
            if not is_plain_attempt(attempt):
                whole.append(attempt_row(order[name], attempt))
                continue
            ordinal, idx = order[name], NO_INDEX if index is None else index
            began, seq = time_text(attempt.started_at), attempt.seq
            seen = NULL if attempt.seen_at is None else time_text(attempt.seen_at)
            pool = NULL if attempt.pool is None else attempt.pool
            if attempt.status is AttemptStatus.RUNNING:
                started.append((began, seen, pool, seq, run, ordinal, idx, number))
            else:
                ended, code = time_text(attempt.finished_at), attempt.exit_code
                succeeded.append((began, seen, pool, seq, ended, code, run, ordinal, idx, number))
    if not _fit(connection, ("start_attempt", started), ("finish_attempt", succeeded)):
        whole = [attempt_row(order[a.key.task.name], a) for _, order, _, attempts in changes for a in attempts]
    connection.run_many("write_attempt", whole)


def write_launches(
    connection: Connection, launches: Sequence[LaunchRequest], orders: Mapping[RunId, Order], changed: int
) -> None:
    tasks: list[Row] = []
    attempts: list[Row] = []
    for request in launches:
        task, attempt = request.task, request.attempt
        run, (name, index), number = attempt.key
        ordinal, idx = orders[run][name], NO_INDEX if index is None else index
        tasks.append((task.attempt, time_text(task.dispatched_at), changed, run, ordinal, idx))
        pool, at = NULL if attempt.pool is None else attempt.pool, time_text(attempt.dispatched_at)
        about = attempt.executor, pool, attempt.external_name, attempt.token_hash, at
        attempts.append((run, ordinal, idx, number, name, *about))
    if connection.run_many("launch_task", tasks) != len(tasks):
        rows = [(request.attempt.key.run, request.task) for request in launches]
        connection.run_many("write_task", [task_row(run, orders[run][t.key.name], changed, t) for run, t in rows])
    connection.run_many("launch_attempt", attempts)


def write_groups(
    connection: Connection,
    launches: Sequence[LaunchRequest],
    orders: Mapping[RunId, Order],
    parallelism: Mapping[str, int],
) -> None:
    rows: list[Row] = []
    for request in launches:
        group = request.attempt.group
        if group is not None:
            run, (name, index), number = request.attempt.key
            place = run, orders[run][name], NO_INDEX if index is None else index, number
            rows.append((group.id, group.index, parallelism[group.id], *place))
    connection.run_many("place_in_group", rows)


def _fit(connection: Connection, *statements: tuple[str, list[Row]]) -> bool:
    """Run partial updates until one does not write all its rows; return False then, and all rows have to be written
    whole."""
    return all(connection.run_many(name, rows) == len(rows) for name, rows in statements if rows)

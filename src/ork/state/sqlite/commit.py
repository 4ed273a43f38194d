"""One transaction for all that a step decided, each run behind its fence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import NamedTuple

from ork.core.effects import LaunchRequest
from ork.errors import UnreadableError
from ork.model.ids import RunId, SchedulerId
from ork.model.run import RunStatus
from ork.model.workflow import Rate
from ork.state.admission import ActiveAttempts, Admission, Bucket, Rates, admit, room_left
from ork.state.marks import number_of
from ork.state.records import Committed, RunChanges
from ork.state.refusals import ends_unaware_of_cancel
from ork.state.sqlite.database import Database
from ork.state.sqlite.progress import RunRows, write_attempts, write_launches, write_tasks
from ork.state.sqlite.rows import failure_text, index_number, run_values, time_text

_ALWAYS_OWNED = (RunStatus.PENDING, RunStatus.RUNNING)


class _Open(NamedTuple):
    """Changes whose fence is open, the places of the tasks in their workflow, and the status the run will have."""

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
        write_launches(db.connection, admitted, {of_run.changes.run_id: of_run.order for of_run in opened}, changed)
        _settle(db, opened)
    keys = frozenset([request.attempt.key for request in admitted])
    return Committed(frozenset(fenced), frozenset(overruled), keys, admission.full, admission.again_in)


class _CameToNothing(Exception):  # noqa: N818 (not an error: it rolls back, so that nobody is woken)
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
        return None  # fenced: whoever claims it anew sets it aside


def _is_owned(db: Database, scheduler: SchedulerId, changes: RunChanges) -> bool:
    asked = {"run": changes.run_id, "owner": scheduler, "epoch": changes.epoch}
    return db.connection.row("is_owned", asked) is not None


def _write(db: Database, opened: Sequence[_Open], changed: int, now: str | None) -> None:
    """All but the launches: what ends here makes room for them."""
    # Before the runs: a cancel of an earlier round that is done with here must not cling to the row written below.
    done = [(now, number_of(command), changes.run_id) for changes, _, _ in opened for command in changes.commands_done]
    db.connection.run_many("finish_command", done)
    for changes, _, _ in opened:
        if changes.run is not None:
            db.connection.run("write_run", run_values(changes.run))
    rows = [RunRows(changes.run_id, order, changes.tasks, changes.attempts) for changes, order, _ in opened]
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
    """The write lock is held: whoever commits next counts what is admitted here."""
    limits: dict[str, int] = dict(db.connection.rows("list_limits")) if launches else {}
    rated = [request for request in launches if request.rate is not None or request.attempt.pool is not None]
    if not limits and not rated:
        return Admission(frozenset(range(len(launches))), frozenset(), None, {})
    pools = {name: Rate(count, seconds) for name, count, seconds in db.connection.rows("list_rates")} if rated else {}
    active = (ActiveAttempts(*row) for row in db.connection.rows("count_active")) if limits else ()
    admission = admit(launches, room_left(limits, active), Rates(pools, partial(_open_bucket, db)))
    boot, at = db.clock()
    drawn_from = [(name, bucket.tokens, boot, at) for name, bucket in sorted(admission.buckets.items())]
    db.connection.run_many("write_bucket", drawn_from)
    return admission


def _open_bucket(db: Database, name: str, rate: Rate) -> Bucket:
    """Full when it was never used, and after a restart of the machine, whose clock begins anew."""
    row = db.connection.row("get_bucket", (name,))
    boot, now = db.clock()
    if row is None or row[1] != boot:
        return Bucket(rate, rate.count, 0.0)
    return Bucket(rate, row[0], now - row[2])


def _settle(db: Database, opened: Iterable[_Open]) -> None:
    for changes, _, status in opened:
        if changes.release_ownership or status not in _ALWAYS_OWNED:
            db.connection.run("settle_run", {"run": changes.run_id, "release": int(changes.release_ownership)})

"""One transaction for all that a step decided, each run behind its fence."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, NamedTuple

from ork.core.effects import Wish
from ork.model.ids import RunId, SchedulerId
from ork.model.notice import NoticeKind
from ork.model.run import RunStatus
from ork.state.admission import Admission
from ork.state.postgres.connection import Session
from ork.state.postgres.database import CameToNothing, Database
from ork.state.postgres.limits import admit_wishes
from ork.state.postgres.rows import attempt_row, run_values, task_row
from ork.state.refusals import ends_unaware_of_cancel
from ork.state.rows import Columns, failure_text, index_number
from ork.state.store import Committed, RunChanges


class _Open(NamedTuple):
    """Changes whose fence is open, and the places of the tasks in their workflow."""

    changes: RunChanges
    order: dict[str, int]


class _Fences(NamedTuple):
    opened: list[_Open]
    fenced: frozenset[RunId]
    overruled: frozenset[RunId]


async def commit(db: Database, scheduler: SchedulerId, changes: Sequence[RunChanges], now: datetime) -> Committed:
    if not changes:
        return Committed()
    admission = Admission(frozenset(), frozenset(), None, {})
    admitted: list[tuple[_Open, Wish]] = []
    with suppress(CameToNothing):
        async with db.writing() as session:
            fences = await _pass_fences(db, session, scheduler, changes)
            opened = fences.opened
            if not opened:
                raise CameToNothing
            changed = await session.next_change()
            await _write(session, opened, changed, now)
            wishes = [(of_run, wish) for of_run in opened for wish in of_run.changes.wishes]
            admission = await admit_wishes(db, session, [wish for _, wish in wishes])
            admitted = [wishes[place] for place in sorted(admission.admitted)]
            if not admitted and all(of_run.changes.only_wishes for of_run in opened):
                raise CameToNothing
            await _launch(session, admitted, changed)
            await _settle(session, opened, {of_run.changes.run_id for of_run, _ in admitted}, changed)
            await _write_notices(session, opened, now)
            await session.tell_others()
    keys = frozenset(wish.attempt.key for _, wish in admitted)
    return Committed(fences.fenced, fences.overruled, keys, admission.full, admission.again_in)


async def _pass_fences(
    db: Database, session: Session, scheduler: SchedulerId, changes: Sequence[RunChanges]
) -> _Fences:
    rows = {row[0]: row for row in await session.rows("fence", [of_run.run_id for of_run in changes])}
    unaware = [c.run_id for c in changes if ends_unaware_of_cancel(c.run) and c.run_id in rows and rows[c.run_id][5]]
    cancelled = {run for (run,) in await session.rows("unseen_cancels", unaware)} if unaware else set()
    opened: list[_Open] = []
    fenced: set[RunId] = set()
    for of_run in changes:
        row = rows.get(of_run.run_id)
        if row is None or row[1] != scheduler or row[2] != of_run.epoch:
            fenced.add(of_run.run_id)
        elif of_run.run_id not in cancelled:
            opened.append(_Open(of_run, await db.order(session, row[3])))
    return _Fences(opened, frozenset(fenced), frozenset(cancelled - fenced))


async def _write(session: Session, opened: Sequence[_Open], changed: int, now: datetime) -> None:
    """Tasks, attempts and commands, all but the launches: what ends here makes room for them."""
    done = [(command, changes.run_id, now) for changes, _ in opened for command in changes.commands_done]
    await session.write("finish_commands", done)
    tasks = [
        task_row(changes.run_id, order[task.key.name], changed, task)
        for changes, order in opened
        for task in changes.tasks
    ]
    attempts = [
        attempt_row(order[attempt.key.task.name], attempt)
        for changes, order in opened
        for attempt in changes.attempts
    ]  # fmt: skip
    await session.write("write_tasks", _last_of_each(tasks, 3))
    await session.write("write_attempts", _last_of_each(attempts, 4))


def _last_of_each(rows: Sequence[Columns], width: int) -> list[Columns]:
    """One statement cannot write a row twice: of several with the same key (its first columns) the last counts.

    In the order of keys, as rows are locked everywhere.
    """
    by_key = {row[:width]: row for row in rows}
    return [by_key[key] for key in sorted(by_key)]


async def _launch(session: Session, admitted: Sequence[tuple[_Open, Wish]], changed: int) -> None:
    tasks = [task_row(of.changes.run_id, of.order[w.task.key.name], changed, w.task) for of, w in admitted]
    attempts = [attempt_row(of.order[wish.task.key.name], wish.attempt) for of, wish in admitted]
    await session.write("write_tasks", _last_of_each(tasks, 3))
    await session.write("write_attempts", _last_of_each(attempts, 4))


async def _settle(session: Session, opened: Sequence[_Open], launched: set[RunId], changed: int) -> None:
    """The runs' own rows, last: whether they need an owner follows from all that was written before."""
    written: list[Columns] = []
    touched: list[Columns] = []
    for changes, _ in opened:
        if changes.run is not None:
            id, *values = run_values(changes.run).values()
            written.append((id, changed, changes.rest, *values))
        elif not changes.only_wishes or changes.run_id in launched:
            touched.append((changes.run_id, changed, changes.rest))
    await session.write("write_runs", written)
    await session.write("touch_runs", touched)


async def _write_notices(session: Session, opened: Sequence[_Open], now: datetime) -> None:
    alerts: list[tuple[Any, ...]] = []
    for changes, _ in opened:
        for task, failure in ((alert.task, alert.failure) for alert in changes.alerts):
            kind = NoticeKind.RUN if task is None else NoticeKind.TASK
            place = (None, None) if task is None else (task.name, index_number(task.index))
            alerts.append((kind.value, changes.run_id, *place, failure_text(failure), now))
    await session.write("write_alerts", alerts)
    succeeded = [c.run_id for c, _ in opened if c.run is not None and c.run.status is RunStatus.SUCCESS]
    if succeeded:
        await session.run("add_recoveries", succeeded, now)

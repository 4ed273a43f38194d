"""Who may act on which run: leases, claims and epochs.

Locks are taken in one order everywhere: schedulers, workflows, runs, limits, buckets; and rows of one table in the order
of their names. Where that would not do, what is locked is skipped. So no two transactions wait for each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import groupby

from ork.model.ids import RunId, SchedulerId
from ork.model.run import RunCommand, SchedulerEntry
from ork.state.claims import that_fit
from ork.state.postgres.connection import Row, Session
from ork.state.postgres.database import Database, runs_by_id
from ork.state.postgres.rows import attempt_of, free_text, task_of
from ork.state.rows import command_of
from ork.state.store import Claim, ClaimedRun


async def introduce(db: Database, scheduler: SchedulerId, identity: str, kind: str, now: datetime) -> None:
    async with db.writing() as session:
        await session.run("introduce", scheduler, free_text(identity), kind, now, db.moment(), db.lease_seconds)
        await session.run("disown", [scheduler])


async def renew(db: Database, scheduler: SchedulerId) -> bool:
    async with db.writing() as session:
        return await session.run("renew", scheduler, db.moment(), db.lease_seconds) == 1


async def bury(db: Database, schedulers: Sequence[SchedulerId]) -> None:
    async with db.writing() as session:
        await session.run("end_leases", schedulers)
        await session.tell_others()


async def release(db: Database, scheduler: SchedulerId, runs: Sequence[RunId] | None = None) -> None:
    async with db.writing() as session:
        if runs is None:
            await _forget(session, [scheduler])
        else:
            await session.run("release_runs", scheduler, runs)
        await session.tell_others()


async def claim_runs(db: Database, scheduler: SchedulerId, room: int, now: datetime) -> Claim:  # noqa: ARG001 (leases go by the store's clock)
    async with db.reading() as session:
        holds_lease, has_free_runs, has_lapsed_owners = (
            await session.rows("look_for_work", scheduler, db.moment())
        )[0]  # fmt: skip
        if not holds_lease:
            return Claim()
        if not (room > 0 and (has_free_runs or has_lapsed_owners)):
            return Claim((), await _commands(session, scheduler))
    if has_lapsed_owners:
        await db.end_silent_sessions()
    async with db.writing() as session:
        leases: dict[str, bool] = dict(await session.rows("lock_leases", scheduler, db.moment()))
        if not leases.get(scheduler):
            return Claim()
        lapsed = [id for id, holds in leases.items() if not holds]
        if lapsed:
            await _forget(session, lapsed)
        taken = await _take(session, scheduler, room)
        return Claim(await _load(db, session, taken), await _commands(session, scheduler))


async def _forget(session: Session, schedulers: Sequence[str]) -> None:
    """No run may name an owner that has no row: that is how a lapsed owner is told from a living one."""
    await session.run("forget_schedulers", schedulers)
    await session.run("disown", schedulers)


async def _take(session: Session, scheduler: SchedulerId, room: int) -> list[str]:
    """Asks again while some were passed over because their workflow filled up: each time one workflow fewer."""
    limited = [name for (name,) in await session.rows("lock_limited_workflows")]
    free: dict[str, int] = dict(await session.rows("room_in_workflows", limited)) if limited else {}
    taken: list[str] = []
    while room > len(taken):
        roomy = [workflow for workflow, left in free.items() if left > 0]
        found = await session.rows("claimable_runs", roomy, room - len(taken))
        fitting = that_fit(found, free)
        if fitting:
            await session.run("take_runs", scheduler, fitting)
        taken += fitting
        if len(fitting) == len(found):
            break
    return taken


async def _load(db: Database, session: Session, ids: list[str]) -> tuple[ClaimedRun, ...]:
    found = await runs_by_id(session, ids)
    # At epoch 1 nobody owned it before, so nobody can have written below it.
    older = [run.id for run, row in found if row[-2] > 1]
    tasks = await _by_run(session, "tasks_of_runs", older)
    attempts = await _by_run(session, "current_attempts", older)
    return tuple(
        [
            ClaimedRun(
                run, row[-2], await db.needed_version(session, run.version),
                tuple(task_of(task[1:]) for task in tasks.get(run.id, ())),
                tuple(attempt_of(attempt) for attempt in attempts.get(run.id, ())),
            )
            for run, row in found
        ]
    )  # fmt: skip


async def _by_run(session: Session, name: str, runs: list[RunId]) -> dict[str, list[Row]]:
    rows = await session.rows(name, runs) if runs else []
    return {run: list(of_run) for run, of_run in groupby(rows, key=lambda row: str(row[0]))}


async def _commands(session: Session, scheduler: SchedulerId) -> tuple[RunCommand, ...]:
    return tuple(command_of(row) for row in await session.rows("commands_for", scheduler))


async def list_schedulers(db: Database) -> tuple[SchedulerEntry, ...]:
    async with db.reading() as session:
        rows = await session.rows("list_schedulers", db.moment())
    return tuple(SchedulerEntry(SchedulerId(row[0]), *row[1:]) for row in rows)


async def get_owner(db: Database, run: RunId) -> SchedulerId | None:
    async with db.reading() as session:
        row = await session.row("get_owner", run)
    return None if row is None or row[0] is None else SchedulerId(row[0])

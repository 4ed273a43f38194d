"""Which scheduler may act on which run: leases, claims and epochs.

Locks are taken in the same order everywhere: schedulers, workflows, runs, limits, buckets; rows of one table in the
order of their names. Where that is impossible, locked rows are skipped. So there are no deadlocks.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from itertools import groupby
from typing import NamedTuple

from ork.errors import StoreError, UnreadableError
from ork.model.ids import RunId, SchedulerId
from ork.model.quarantine import ItemKind, QuarantinedRun
from ork.model.run import SchedulerEntry
from ork.model.task import Heartbeat
from ork.state.installation import settings_differ
from ork.state.lenient import UNKNOWN_TIME
from ork.state.postgres.connection import Row
from ork.state.postgres.database import Database
from ork.state.postgres.failures import DRIVER_ERRORS
from ork.state.postgres.quarantine import note, set_aside
from ork.state.postgres.rows import attempt_of, free_text, lenient, run_of, task_of
from ork.state.records import Claim, ClaimedRun
from ork.state.rows import Columns, attempt_key, command_of, index_number, is_command, json_text, notes_of, text_of

_RUN_COLUMNS = 19  # of a row of `ork.claim`; the columns after them are a command


async def register(
    db: Database, scheduler: SchedulerId, identity: str, kind: str, now: datetime, *, terms: str | None = None
) -> None:
    values = (scheduler, free_text(identity), kind, now, db.moment(), db.lease_seconds, terms)
    async with db.writing() as session:
        if not await session.run("register", *values):
            raise settings_differ()
        await session.run("disown", [scheduler])


async def renew(db: Database, scheduler: SchedulerId) -> bool:
    return await db.run("renew", scheduler, db.moment(), db.lease_seconds) == 1


async def note_fallbacks(db: Database, scheduler: SchedulerId, notes: Sequence[str]) -> None:
    await db.run("note_fallbacks", scheduler, json_text(list(notes)))


async def expire(db: Database, schedulers: Sequence[SchedulerId]) -> None:
    async with db.writing() as session:
        await session.run("end_leases", schedulers)
        await session.notify_others()


async def release(
    db: Database, scheduler: SchedulerId, runs: Sequence[RunId] | None = None, *, exits: bool = False
) -> None:
    if runs is None and await db.row("is_registered", scheduler) is None:
        return
    if runs is not None and not runs:
        return
    async with db.writing() as session:
        if runs is None:
            await session.rows("forget_schedulers", [scheduler])
            if exits:
                await session.run("clear_control", scheduler)
            await session.notify_others()
        elif await session.run("release_runs", scheduler, runs):
            await session.notify_others()


async def claim_runs(
    db: Database,
    scheduler: SchedulerId,
    room: int,
    now: datetime,
    *,
    only: Collection[RunId] | None = None,
) -> Claim:
    """Claim runs by `ork.claim`. One request; two more if a run had an owner before, and two more with `only`."""
    asked = scheduler, room, db.moment(), db.silent_seconds
    if only is None:
        rows = await db.rows("claim", *asked)
    else:
        async with db.writing() as session:
            await session.rows("choose_runs", sorted(only), db.moment())
            rows = await session.rows("claim", *asked)
    taken = [row[:_RUN_COLUMNS] for row in rows if row["command"] is None]
    commands = [(row["command"], row["id"], *row[_RUN_COLUMNS + 1 :]) for row in rows if row["command"] is not None]
    claimed, broken = await _load(db, scheduler, taken, now)
    unknown = [command for command in commands if not is_command(command)]
    if unknown:
        await _end_commands(db, unknown, now)
    known = tuple(command_of(command) for command in commands if is_command(command))
    return Claim(claimed, known, broken)


async def _load(
    db: Database, scheduler: SchedulerId, taken: Sequence[Columns], now: datetime
) -> tuple[tuple[ClaimedRun, ...], tuple[QuarantinedRun, ...]]:
    """Load the claimed runs; quarantine those that cannot be decoded and return them separately."""
    # At epoch 1 the run was never owned before, so it has no tasks or attempts yet.
    older = {row[0]: row[-2] for row in taken if row[-2] > 1}
    below = await _read_below(db, scheduler, older) if older else _Below(frozenset(), {}, {}, {})
    found, broken = [], []
    for row in taken:
        id = RunId(row[0])
        if id in older and id not in below.ours:
            continue
        tasks, attempts = below.tasks.get(id, []), below.attempts.get(id, [])
        try:
            found.append(await _claimed(db, row, tasks, attempts, below.heartbeats.get(id, [])))
        except (*DRIVER_ERRORS, StoreError):
            raise
        except Exception as problem:
            has_reason = isinstance(problem, UnreadableError)
            why = lenient.why_unreadable(row, [task[1:] for task in tasks], attempts)
            reason = str(problem) if has_reason else why or repr(problem)
            broken.append(await set_aside(db, scheduler, id, row[-2], reason, now))
    return tuple(found), tuple(each for each in broken if each is not None)


async def _claimed(
    db: Database, row: Columns, tasks: Sequence[Row], attempts: Sequence[Row], heartbeats: Sequence[Row]
) -> ClaimedRun:
    run = run_of(row)
    db.note_run(run.id, run.version)
    version = await db.needed_version(db, run.version)
    below = tuple(task_of(task[1:]) for task in tasks), tuple(attempt_of(attempt) for attempt in attempts)
    noted = tuple(Heartbeat(attempt_key(of[:4]), of[4], of[5]) for of in heartbeats)
    return ClaimedRun(run, row[-2], version, *below, noted)


async def _end_commands(db: Database, commands: Sequence[Columns], now: datetime) -> None:
    """Finish and quarantine commands of unknown kinds."""
    async with db.writing() as session:
        for id, run, kind, *_ in commands:
            await session.run("finish_command", id, now)
            await note(session, ItemKind.COMMAND, text_of(id), f"command {kind!r} for run {run} is unknown", now)


class _Below(NamedTuple):
    """The tasks, attempts and heartbeats of runs. `ours` are the runs that we still owned when these were read; the
    others were claimed by another scheduler meanwhile."""

    ours: frozenset[str]
    tasks: dict[str, list[Row]]
    attempts: dict[str, list[Row]]
    heartbeats: dict[str, list[Row]]


async def _read_below(db: Database, scheduler: SchedulerId, epochs: dict[str, int]) -> _Below:
    async with db.reading() as session:
        ours = [id for (id,) in await session.rows("still_ours", scheduler, list(epochs), list(epochs.values()))]
        tasks = await session.rows("tasks_of_runs", ours)
        attempts = await session.rows("current_attempts", ours)
        heartbeats = await session.rows("heartbeats_of_runs", ours, db.moment()) if attempts else []
    return _Below(frozenset(ours), _by_run(tasks), _by_run(attempts), _by_run(heartbeats))


def _by_run(rows: Sequence[Row]) -> dict[str, list[Row]]:
    return {run: list(of_run) for run, of_run in groupby(rows, key=lambda row: str(row[0]))}


async def note_heartbeats(db: Database, heartbeats: Sequence[Heartbeat]) -> None:
    rows = [
        (run, name, index_number(index), number, seq, age)
        for (run, (name, index), number), seq, age in ((each.attempt, each.seq, each.age) for each in heartbeats)
    ]
    if rows:
        await db.run("note_heartbeats", *map(list, zip(*rows, strict=True)), db.moment())


async def list_schedulers(db: Database) -> tuple[SchedulerEntry, ...]:
    rows = await db.rows("list_schedulers", db.moment())
    return tuple(
        SchedulerEntry(
            SchedulerId(id), identity, kind, lenient.time(started_at) or UNKNOWN_TIME, left, runs, notes_of(notes)
        )
        for id, identity, kind, started_at, left, runs, notes in rows
    )


async def get_owner(db: Database, run: RunId) -> SchedulerId | None:
    row = await db.row("get_owner", run)
    return None if row is None or row[0] is None else SchedulerId(row[0])


async def get_starter(db: Database, run: RunId) -> str | None:
    row = await db.row("get_starter", run)
    return None if row is None else row[0]


async def get_key(db: Database, run: RunId) -> str | None:
    row = await db.row("get_key", run)
    return None if row is None else row[0]

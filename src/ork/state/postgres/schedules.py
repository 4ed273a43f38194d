"""What is due by the clock: schedules, notices to people, and what is old."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from ork.model.ids import RunId, TaskKey, VersionId
from ork.model.notice import Notice, NoticeKind
from ork.model.run import NewRun, RunStatus
from ork.state.postgres.connection import Row
from ork.state.postgres.database import Database
from ork.state.postgres.requests import add_runs
from ork.state.postgres.rows import free_text
from ork.state.rows import failure_of, index_of, schedule_of
from ork.state.schedules import ScheduleEntry, UnsentAlert

_FINAL = tuple(status.value for status in RunStatus if status.is_final)
_PARTS = (
    "forget_alerts", "forget_commands", "forget_attempts", "forget_task_changes", "forget_tasks", "forget_runs",
    "note_leftovers",
)  # fmt: skip


async def list_schedules(db: Database) -> tuple[ScheduleEntry, ...]:
    return _entries(await db.rows("list_schedules"))


async def due_schedules(db: Database, now: datetime) -> tuple[ScheduleEntry, ...]:
    return _entries(await db.rows("due_schedules", now))


async def next_fire_at(db: Database, after: datetime) -> datetime | None:
    return _moment((await db.rows("next_fire_at", after))[0])


async def fire(
    db: Database,
    workflow: str,
    expected: datetime | None,
    runs: Sequence[NewRun],
    next_fire: datetime | None,
    now: datetime,
    *,
    missed: str | None = None,
) -> bool:
    async with db.writing() as session:
        if await session.row("expect_fire", workflow, expected) is None:
            return False
        await add_runs(session, runs, now)
        await session.run("move_next_fire", workflow, next_fire)
        if missed is not None:
            await session.run("add_missed", workflow, free_text(missed), now)
        await session.tell_others()
    return True


async def take_alerts(db: Database, limit: int, now: datetime, hold_seconds: float = 60.0) -> tuple[Notice, ...]:
    # Nobody is woken: what is being sent is nothing for others to act on
    taken = await db.rows("take_alerts", now, limit, hold_seconds)
    return tuple(_notice_of(row) for row in sorted(taken, key=lambda row: int(row[0])))


async def settle_alert(
    db: Database, id: int, sent: Sequence[str], retry_at: datetime | None, error: str | None = None
) -> None:
    await db.run("settle_alert", id, list(sent), retry_at, free_text(error))


async def unsent_alerts(db: Database, limit: int) -> tuple[UnsentAlert, ...]:
    rows = await db.rows("unsent_alerts", limit)
    return tuple(UnsentAlert(_notice_of(row[2:]), row[0], row[1]) for row in rows)


async def next_alert_at(db: Database) -> datetime | None:
    return _moment((await db.rows("next_alert_at"))[0])


async def prunable_runs(db: Database, before: datetime, limit: int, keep_last: int = 0) -> tuple[RunId, ...]:
    rows = await db.rows("prunable_runs", before, limit, keep_last, _FINAL)
    return tuple(RunId(id) for (id,) in rows)


async def prune(db: Database, before: datetime, limit: int, keep_last: int = 0) -> tuple[RunId, ...]:
    async with db.writing() as session:  # nobody is woken: what is gone is nothing to act on
        wanted = [id for (id,) in await session.rows("prunable_runs", before, limit, keep_last, _FINAL)]
        locked = {id for (id,) in await session.rows("lock_prunable", wanted)} if wanted else set()
        for part in _PARTS if locked else ():
            await session.run(part, sorted(locked))
        await session.run("forget_told", before)
    return tuple(RunId(id) for id in wanted if id in locked)


async def leftovers(db: Database, limit: int) -> tuple[RunId, ...]:
    return tuple(RunId(id) for (id,) in await db.rows("list_leftovers", limit))


async def swept(db: Database, runs: Sequence[RunId]) -> None:
    await db.run("drop_leftovers", sorted(runs))


def _entries(rows: Sequence[Row]) -> tuple[ScheduleEntry, ...]:
    found = []
    for name, version, text, fires, next_fire in rows:
        schedule = schedule_of(text)
        if schedule is not None:
            found.append(ScheduleEntry(name, VersionId(version), schedule, fires, next_fire))
    return tuple(found)


def _notice_of(row: Row) -> Notice:
    id, kind, workflow, raised_at, run, task, idx, failure, detail, tries, sent = row
    return Notice(
        id, NoticeKind(kind), workflow, raised_at, None if run is None else RunId(run),
        None if task is None else TaskKey(task, index_of(idx)), failure_of(failure), detail, tries, tuple(sent),
    )  # fmt: skip


def _moment(row: Row) -> datetime | None:
    found: datetime | None = row[0]
    return found

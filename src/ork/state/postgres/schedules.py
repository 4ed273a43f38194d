"""Work that is due by time: schedules, notices to people, and pruning."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from ork.model.ids import RunId
from ork.model.notice import Notice
from ork.model.quarantine import ItemKind
from ork.model.run import NewRun, RunStatus
from ork.state.lenient import entries
from ork.state.postgres.database import Database
from ork.state.postgres.locations import next_location_at
from ork.state.postgres.quarantine import note
from ork.state.postgres.requests import add_runs
from ork.state.postgres.rows import checked, free_text, lenient
from ork.state.records import LookAhead, ScheduleEntry, UnsentAlert
from ork.state.rows import number_of

_FINAL = tuple(status.value for status in RunStatus if status.is_final)
_PARTS = (
    "forget_alerts", "forget_commands", "forget_attempts", "forget_task_changes", "forget_tasks", "forget_runs",
    "note_leftovers",
)  # fmt: skip


async def list_schedules(db: Database) -> tuple[ScheduleEntry, ...]:
    return entries(await db.rows("list_schedules"), checked)


async def look_ahead(db: Database, locations: Collection[str]) -> LookAhead:
    rows = await db.rows("look_ahead", list(locations))
    runs_wait, alert, location = rows[0][:3]
    next_location = lenient.time(location)
    if location is not None and next_location is None:
        next_location = await next_location_at(db, locations)  # repairs damaged notices
    schedules = entries([tuple(row[3:]) for row in rows if row["name"] is not None], checked)
    return LookAhead(runs_wait, schedules, lenient.time(alert), next_location)


async def due_schedules(db: Database, now: datetime) -> tuple[ScheduleEntry, ...]:
    return entries(await db.rows("due_schedules", now), checked)


async def next_fire_at(db: Database, after: datetime) -> datetime | None:
    return lenient.time((await db.rows("next_fire_at", after))[0][0])


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
        await session.notify_others()
    return True


async def take_alerts(db: Database, limit: int, now: datetime, hold_seconds: float = 60.0) -> tuple[Notice, ...]:
    # wakes no one: other schedulers do not act on a notice that is being sent
    taken = await db.rows("take_alerts", now, limit, hold_seconds)
    found = [lenient.notice(row, tuple) for row in sorted(taken, key=lambda row: int(row[0]))]
    await _set_aside(db, {notice.id: reason for notice, reason in found if reason is not None}, now)
    return tuple(notice for notice, reason in found if reason is None)


async def _set_aside(db: Database, notices: Mapping[str, str], now: datetime) -> None:
    """Quarantine notices that cannot be decoded; they are not sent."""
    if not notices:
        return
    async with db.writing() as session:
        for id, reason in notices.items():
            await session.run("set_notice_aside", number_of(id), free_text(f"set aside: {reason}"))
            await note(session, ItemKind.NOTICE, id, reason, now)


async def settle_alert(
    db: Database, id: str, sent: Sequence[str], retry_at: datetime | None, error: str | None = None
) -> None:
    await db.run("settle_alert", number_of(id), list(sent), retry_at, free_text(error))


async def unsent_alerts(db: Database, limit: int) -> tuple[UnsentAlert, ...]:
    rows = await db.rows("unsent_alerts", limit)
    return tuple(UnsentAlert(lenient.notice(row[2:], tuple)[0], row[0], lenient.time(row[1])) for row in rows)


async def next_alert_at(db: Database) -> datetime | None:
    return lenient.time((await db.rows("next_alert_at"))[0][0])


async def prunable_runs(db: Database, before: datetime, limit: int, keep_last: int = 0) -> tuple[RunId, ...]:
    rows = await db.rows("prunable_runs", before, limit, keep_last, _FINAL)
    return tuple(RunId(id) for (id,) in rows)


async def prune(db: Database, before: datetime, limit: int, keep_last: int = 0) -> tuple[RunId, ...]:
    async with db.writing() as session:  # wakes no one: schedulers do not act on deleted runs
        wanted = [id for (id,) in await session.rows("prunable_runs", before, limit, keep_last, _FINAL)]
        locked = {id for (id,) in await session.rows("lock_prunable", wanted)} if wanted else set()
        for part in _PARTS if locked else ():
            await session.run(part, sorted(locked))
        await session.run("forget_quarantined", ItemKind.RUN.value, sorted(locked))
        await session.run("forget_told", before)
    return tuple(RunId(id) for id in wanted if id in locked)


async def leftovers(db: Database, limit: int) -> tuple[RunId, ...]:
    return tuple(RunId(id) for (id,) in await db.rows("list_leftovers", limit))


async def swept(db: Database, runs: Sequence[RunId]) -> None:
    await db.run("drop_leftovers", sorted(runs))

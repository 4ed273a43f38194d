"""Code locations: lists them, assigns them to schedulers for a scan, and stores the result."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta

from ork.model.location import LocationEntry, LocationScan
from ork.model.record import replaced
from ork.state.lenient import UNREADABLE, damaged_or_not
from ork.state.postgres.connection import Row
from ork.state.postgres.database import Database
from ork.state.postgres.rows import checked, free_text, lenient


async def set_locations(db: Database, sources: Mapping[str, str], now: datetime) -> None:
    known = await list_locations(db)
    if {entry.name: entry.source for entry in known} == dict(sources):
        return  # every scheduler sets them when it starts: unchanged locations wake no one
    async with db.writing() as session:
        await session.run("lock_locations")
        await session.run("release_workflows", list(sources))
        await session.run("forget_locations", list(sources))
        for name, source in sorted(sources.items()):
            await session.run("set_location", name, source, now)
        await session.notify_others()


async def list_locations(db: Database) -> tuple[LocationEntry, ...]:
    return tuple(_entry_of(row) for row in await db.rows("list_locations"))


async def ask_refresh(db: Database, location: str, now: datetime) -> bool:
    async with db.writing() as session:
        is_known = await session.run("ask_refresh", location, now) == 1
        await session.notify_others()
    return is_known


async def take_location(
    db: Database, names: Collection[str], now: datetime, hold_seconds: float
) -> LocationEntry | None:
    row = await db.row("take_location", now, hold_seconds, list(names))
    entry = None if row is None else _entry_of(row)
    if entry is not None and entry.code == UNREADABLE:
        await db.run("reset_location", entry.name, now, entry.held_until, free_text(entry.error))
    return entry


async def keep_location(db: Database, held: LocationEntry, now: datetime, hold_seconds: float) -> LocationEntry | None:
    kept = replaced(held, held_until=now + timedelta(seconds=hold_seconds))
    is_held = await db.run("keep_location", held.name, held.source, held.held_until, kept.held_until) == 1
    return kept if is_held else None


async def settle_location(
    db: Database, held: LocationEntry, scan: LocationScan, due_at: datetime, now: datetime
) -> bool:
    words = (scan.seen, scan.digest, scan.code, free_text(scan.error), free_text(scan.output))
    return await db.run("settle_location", held.name, held.source, held.held_until, due_at, now, *words) == 1


async def next_location_at(db: Database, names: Collection[str]) -> datetime | None:
    moment = (await db.rows("next_location_at", list(names)))[0][0]
    if moment is None or (planned := lenient.time(moment)) is not None:
        return None if moment is None else planned
    return await _reset_damaged(db)


async def _reset_damaged(db: Database) -> datetime:
    """Make locations whose times cannot be decoded due now, so that the next scan rewrites them. Returns the time."""
    now = datetime.now(UTC)
    for entry in await list_locations(db):
        if entry.code == UNREADABLE:
            await db.run("reset_location", entry.name, now, None, free_text(entry.error))
    return now


def _entry_of(row: Row) -> LocationEntry:
    return damaged_or_not(LocationEntry(*row), checked)

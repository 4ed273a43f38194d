"""Code locations: lists them, assigns them to schedulers for a scan, and stores the result."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta

from ork.model.location import LocationEntry, LocationScan
from ork.model.record import replaced
from ork.state.lenient import UNREADABLE, damaged_or_not
from ork.state.sqlite.connection import Row
from ork.state.sqlite.database import Database
from ork.state.sqlite.rows import free_text, json_text, lenient, time_of, time_text


def set_locations(db: Database, sources: Mapping[str, str], now: datetime) -> None:
    if {entry.name: entry.source for entry in list_locations(db)} == dict(sources):
        return  # every scheduler sets them when it starts: unchanged locations wake no one
    with db.changing():
        for entry in list_locations(db):
            if entry.name not in sources:
                db.connection.run("release_workflows", {"name": entry.name})
                db.connection.run("forget_location", {"name": entry.name})
        for name, source in sources.items():
            db.connection.run("set_location", {"name": name, "source": source, "now": time_text(now)})


def list_locations(db: Database) -> tuple[LocationEntry, ...]:
    return tuple(_entry_of(row) for row in db.connection.rows("list_locations"))


def ask_refresh(db: Database, location: str, now: datetime) -> bool:
    with db.changing():
        return db.connection.run("ask_refresh", {"name": location, "now": time_text(now)}) == 1


def take_location(db: Database, names: Collection[str], now: datetime, hold_seconds: float) -> LocationEntry | None:
    wanted = {"now": time_text(now), "names": json_text(list(names))}
    if db.connection.row("due_location", wanted) is None:
        return None
    until = now + timedelta(seconds=hold_seconds)
    with db.connection.writing():
        row = db.connection.row("due_location", wanted)
        if row is None:
            return None
        db.connection.run("hold_location", {"name": row[0], "until": time_text(until)})
        entry = _entry_of(row)
        if entry.code == UNREADABLE:
            db.connection.run("reset_location", {"name": row[0], "now": time_text(now), "error": entry.error})
            db.connection.run("hold_location", {"name": row[0], "until": time_text(until)})
    return replaced(entry, held_until=until)


def keep_location(db: Database, held: LocationEntry, now: datetime, hold_seconds: float) -> LocationEntry | None:
    kept = replaced(held, held_until=now + timedelta(seconds=hold_seconds))
    with db.connection.writing():
        values = {**_held(held), "until": time_text(kept.held_until)}
        return kept if db.connection.run("keep_location", values) == 1 else None


def settle_location(db: Database, held: LocationEntry, scan: LocationScan, due_at: datetime, now: datetime) -> bool:
    values = {
        **_held(held),
        "due_at": time_text(due_at),
        "now": time_text(now),
        "seen": scan.seen,
        "digest": scan.digest,
        "code": scan.code,
        "error": free_text(scan.error),
        "output": free_text(scan.output),
    }
    with db.connection.writing():
        return db.connection.run("settle_location", values) == 1


def next_location_at(db: Database, names: Collection[str]) -> datetime | None:
    moment = db.connection.rows("next_location_at", {"names": json_text(list(names))})[0][0]
    if moment is None or (planned := lenient.time(moment)) is not None:
        return None if moment is None else planned
    return _reset_damaged(db)


def _reset_damaged(db: Database) -> datetime:
    """Make locations whose times cannot be decoded due now, so that the next scan rewrites them. Returns the time."""
    now = datetime.now(UTC)
    with db.connection.writing():
        for entry in list_locations(db):
            if entry.code == UNREADABLE:
                values = {"name": entry.name, "now": time_text(now), "error": entry.error}
                db.connection.run("reset_location", values)
    return now


def _held(entry: LocationEntry) -> dict[str, str | None]:
    return {"name": entry.name, "source": entry.source, "held_until": time_text(entry.held_until)}


def _entry_of(row: Row) -> LocationEntry:
    return damaged_or_not(LocationEntry(*row), time_of)

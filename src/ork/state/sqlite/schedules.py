"""Schedules: what is due, and firing it exactly once."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from ork.model.ids import VersionId
from ork.model.notice import NoticeKind
from ork.model.run import NewRun
from ork.state.schedules import ScheduleEntry
from ork.state.sqlite.connection import Row
from ork.state.sqlite.database import Database
from ork.state.sqlite.requests import add_runs
from ork.state.sqlite.rows import free_text, schedule_of, time_of, time_text


def list_schedules(db: Database) -> tuple[ScheduleEntry, ...]:
    return _entries(db.connection.rows("list_schedules"))


def due_schedules(db: Database, now: datetime) -> tuple[ScheduleEntry, ...]:
    return _entries(db.connection.rows("due_schedules", {"now": time_text(now)}))


def next_fire_at(db: Database, after: datetime) -> datetime | None:
    return time_of(db.connection.rows("next_fire_at", {"after": time_text(after)})[0][0])


def fire(
    db: Database,
    workflow: str,
    expected: datetime | None,
    runs: Sequence[NewRun],
    next_fire: datetime | None,
    now: datetime,
    *,
    missed: str | None = None,
) -> bool:
    wanted = {"workflow": workflow, "expected": time_text(expected)}
    # Read before the write lock is asked for: the losers of a race disturb and wake nobody.
    if not db.connection.rows("is_expected_fire", wanted):
        return False
    with db.changing() as changed:
        if not db.connection.rows("is_expected_fire", wanted):
            return False
        add_runs(db, runs, now, changed)
        db.connection.run("move_next_fire", {"workflow": workflow, "next_fire": time_text(next_fire)})
        if missed is not None:
            told = {"workflow": workflow, "run": None, "detail": free_text(missed), "now": time_text(now)}
            db.connection.run("add_notice", {"kind": NoticeKind.MISSED.value, **told})
    return True


def _entries(rows: Sequence[Row]) -> tuple[ScheduleEntry, ...]:
    found = []
    for name, version, text, fires, next_fire in rows:
        schedule = schedule_of(text)
        if schedule is not None:
            found.append(ScheduleEntry(name, VersionId(version), schedule, bool(fires), time_of(next_fire)))
    return tuple(found)

"""Schedules: which are due, and firing each time exactly once."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from ork.model.notice import NoticeKind
from ork.model.run import NewRun
from ork.state.lenient import entries
from ork.state.records import LookAhead, ScheduleEntry
from ork.state.sqlite.database import Database
from ork.state.sqlite.locations import next_location_at
from ork.state.sqlite.notices import next_alert_at
from ork.state.sqlite.requests import add_runs
from ork.state.sqlite.rows import free_text, json_text, lenient, time_of, time_text


def list_schedules(db: Database) -> tuple[ScheduleEntry, ...]:
    return entries(db.connection.rows("list_schedules"), time_of)


def look_ahead(db: Database, locations: Collection[str]) -> LookAhead:
    runs_wait, alert, location = db.connection.rows("look_ahead", {"locations": json_text(list(locations))})[0]
    next_alert, next_location = lenient.time(alert), lenient.time(location)
    return LookAhead(
        bool(runs_wait),
        entries(db.connection.rows("active_schedules"), time_of),
        next_alert if alert is None or next_alert is not None else next_alert_at(db),  # repairs damaged notices
        next_location if location is None or next_location is not None else next_location_at(db, locations),
    )


def due_schedules(db: Database, now: datetime) -> tuple[ScheduleEntry, ...]:
    return entries(db.connection.rows("due_schedules", {"now": time_text(now)}), time_of)


def next_fire_at(db: Database, after: datetime) -> datetime | None:
    text = time_text(after)
    while (text := db.connection.rows("next_fire_at", {"after": text})[0][0]) is not None:
        if (moment := lenient.time(text)) is not None:
            return moment
    return None


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
    # Checked before taking the write lock, so that the losers of a race neither block nor wake other handles.
    if not db.connection.rows("is_expected_fire", wanted):
        return False
    with db.changing() as changed:
        if not db.connection.rows("is_expected_fire", wanted):
            return False
        add_runs(db, runs, now, changed)
        db.connection.run("move_next_fire", {"workflow": workflow, "next_fire": time_text(next_fire)})
        if missed is not None:
            notice = {"workflow": workflow, "run": None, "detail": free_text(missed), "now": time_text(now)}
            db.connection.run("add_notice", {"kind": NoticeKind.MISSED.value, **notice})
    return True

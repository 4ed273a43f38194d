"""The outbox: notices to people, until they are sent."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from ork.model.notice import Notice
from ork.model.quarantine import ItemKind
from ork.model.record import replaced
from ork.state.records import UnsentAlert
from ork.state.rows import number_of, text_of
from ork.state.sqlite.connection import Row
from ork.state.sqlite.database import Database
from ork.state.sqlite.quarantine import note
from ork.state.sqlite.rows import free_text, json_text, lenient, time_text


def take_alerts(db: Database, limit: int, now: datetime, hold_seconds: float = 60.0) -> tuple[Notice, ...]:
    wanted = {"now": time_text(now), "limit": limit}
    if not db.connection.rows("due_alerts", wanted):
        return ()
    until = time_text(now + timedelta(seconds=hold_seconds))
    with db.connection.writing():  # wakes no one: other schedulers do not act on a notice that is being sent
        taken = db.connection.rows("due_alerts", wanted)
        db.connection.run_many("hold_alert", [(until, row[0]) for row in taken])
        found = [notice for row in sorted(taken) if (notice := _readable(db, row, now)) is not None]
    return tuple(replaced(notice, tries=notice.tries + 1) for notice in found)


def _readable(db: Database, row: Row, now: datetime) -> Notice | None:
    """The notice, or None if it cannot be decoded; then it is quarantined and not sent. Call inside a transaction."""
    notice, reason = lenient.notice(row, _sent_of)
    if reason is None:
        return notice
    _set_aside(db, row[0], reason, now)
    return None


def _set_aside(db: Database, id: int, reason: str, now: datetime) -> None:
    db.connection.run("set_notice_aside", {"id": id, "error": free_text(f"set aside: {reason}")})
    note(db, ItemKind.NOTICE, text_of(id), reason, now)


def settle_alert(
    db: Database, id: str, sent: Sequence[str], retry_at: datetime | None, error: str | None = None
) -> None:
    values = {
        "id": number_of(id),
        "sent": json_text(list(sent)),
        "retry_at": time_text(retry_at),
        "error": free_text(error),
    }
    with db.connection.writing():
        db.connection.run("settle_alert", values)


def unsent_alerts(db: Database, limit: int) -> tuple[UnsentAlert, ...]:
    rows = db.connection.rows("unsent_alerts", {"limit": limit})
    return tuple(UnsentAlert(lenient.notice(row[2:], _sent_of)[0], row[0], lenient.time(row[1])) for row in rows)


def next_alert_at(db: Database) -> datetime | None:
    while (text := db.connection.rows("next_alert_at")[0][0]) is not None:
        if (moment := lenient.time(text)) is not None:
            return moment
        _set_aside_due(db, text)
    return None


def _set_aside_due(db: Database, text: str) -> None:
    """Quarantine notices whose due time cannot be decoded: they would never be taken."""
    with db.connection.writing():
        for (id,) in db.connection.rows("notices_due_at", {"due_at": text}):
            _set_aside(db, id, f"due_at {text!r} cannot be read", datetime.now(UTC))


def _sent_of(text: str) -> tuple[str, ...]:
    return tuple(map(str, json.loads(text)))

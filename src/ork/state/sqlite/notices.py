"""The outbox: what people are to be told, until they have been."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta

from ork.model.ids import RunId, TaskKey
from ork.model.notice import Notice, NoticeKind
from ork.model.record import replaced
from ork.state.schedules import UnsentAlert
from ork.state.sqlite.connection import Row
from ork.state.sqlite.database import Database
from ork.state.sqlite.rows import failure_of, free_text, index_of, json_text, moment_of, time_of, time_text


def take_alerts(db: Database, limit: int, now: datetime, hold_seconds: float = 60.0) -> tuple[Notice, ...]:
    wanted = {"now": time_text(now), "limit": limit}
    if not db.connection.rows("due_alerts", wanted):
        return ()
    until = time_text(now + timedelta(seconds=hold_seconds))
    with db.connection.writing():  # nobody is woken: what is being sent is nothing for others to act on
        taken = db.connection.rows("due_alerts", wanted)
        db.connection.run_many("hold_alert", [(until, row[0]) for row in taken])
    found = [_notice_of(row) for row in sorted(taken)]
    return tuple(replaced(notice, tries=notice.tries + 1) for notice in found)


def settle_alert(
    db: Database, id: int, sent: Sequence[str], retry_at: datetime | None, error: str | None = None
) -> None:
    values = {"id": id, "sent": json_text(list(sent)), "retry_at": time_text(retry_at), "error": free_text(error)}
    with db.connection.writing():
        db.connection.run("settle_alert", values)


def unsent_alerts(db: Database, limit: int) -> tuple[UnsentAlert, ...]:
    rows = db.connection.rows("unsent_alerts", {"limit": limit})
    return tuple(UnsentAlert(_notice_of(row[2:]), row[0], time_of(row[1])) for row in rows)


def next_alert_at(db: Database) -> datetime | None:
    return time_of(db.connection.rows("next_alert_at")[0][0])


def _notice_of(row: Row) -> Notice:
    id, kind, workflow, raised_at, run, task, idx, failure, detail, tries, sent = row
    return Notice(
        id, NoticeKind(kind), workflow, moment_of(raised_at), None if run is None else RunId(run),
        None if task is None else TaskKey(task, index_of(idx)), failure_of(failure), detail, tries,
        tuple(json.loads(sent)),
    )  # fmt: skip

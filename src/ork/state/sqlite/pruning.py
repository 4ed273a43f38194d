"""Deletes old runs and notices in small transactions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from ork.model.ids import RunId
from ork.model.quarantine import ItemKind
from ork.model.run import RunStatus
from ork.state.sqlite.database import Database
from ork.state.sqlite.rows import time_text

_PARTS = ("forget_alerts", "forget_commands", "forget_attempts", "forget_tasks", "forget_run", "note_leftover")


def prunable_runs(db: Database, before: datetime, limit: int, keep_last: int = 0) -> tuple[RunId, ...]:
    wanted = {"before": time_text(before), "limit": limit, "keep_last": keep_last}
    places: list[tuple[str, str]] = []
    for status in (status for status in RunStatus if status.is_final):
        places += db.connection.rows("prunable_runs", {**wanted, "status": status.value})
    return tuple(RunId(id) for _, id in sorted(places)[:limit])


def prune(db: Database, before: datetime, limit: int, keep_last: int = 0) -> tuple[RunId, ...]:
    with db.connection.writing():  # wakes no one: schedulers do not act on deleted runs
        runs = prunable_runs(db, before, limit, keep_last)
        for part in _PARTS:
            db.connection.run_many(part, [(run,) for run in runs])
        db.connection.run_many("forget_quarantined", [(ItemKind.RUN.value, run) for run in runs])
        db.connection.run("forget_told", {"before": time_text(before)})
    return runs


def leftovers(db: Database, limit: int) -> tuple[RunId, ...]:
    return tuple(RunId(id) for (id,) in db.connection.rows("list_leftovers", {"limit": limit}))


def swept(db: Database, runs: Sequence[RunId]) -> None:
    with db.connection.writing():
        db.connection.run_many("drop_leftover", [(run,) for run in runs])

"""Quarantines runs and other items that cannot be decoded or processed, so that all others continue."""

from __future__ import annotations

from datetime import datetime

from ork.model.ids import RunId, SchedulerId
from ork.model.quarantine import ItemKind, QuarantinedRun
from ork.model.run import RunStatus
from ork.state.quarantine import note_of
from ork.state.sqlite.database import Database
from ork.state.sqlite.rows import free_text, lenient, time_text


def set_aside(
    db: Database, scheduler: SchedulerId, run: RunId, epoch: int, reason: str, now: datetime
) -> QuarantinedRun | None:
    with db.changing() as changed:
        return set_run_aside(db, (scheduler, run, epoch), reason, changed, now)


def set_run_aside(
    db: Database,
    claim: tuple[SchedulerId, RunId, int],
    reason: str,
    changed: int,
    now: datetime,
) -> QuarantinedRun | None:
    """Quarantine the run if it is still owned under this epoch. Call inside a transaction."""
    scheduler, run, epoch = claim
    row = db.connection.row("cancel_is_pending", {"run": run, "owner": scheduler, "epoch": epoch})
    if row is None:
        return None
    workflow, is_final, is_to_be_cancelled = row
    attempts = lenient.readable_attempts(db.connection.rows("active_attempts", {"run": run}))
    is_cancelled = bool(is_to_be_cancelled and not is_final)
    status = None if is_final else RunStatus.CANCELLED if is_cancelled else RunStatus.PAUSED
    values = {
        "run": run,
        "changed": changed,
        "note": free_text(note_of(reason, is_cancelled)),
        "now": time_text(now),
        "status": None if status is None else status.value,
    }
    if is_cancelled:
        db.connection.run("cancel_tasks", values)
        db.connection.run("cancel_attempts", values)
    db.connection.run("free_slots", values)
    db.connection.run("finish_commands", values)
    db.connection.run("set_run_aside", values)
    if is_cancelled:
        forget(db, ItemKind.RUN, run)
    else:
        note(db, ItemKind.RUN, run, reason, now)
    return QuarantinedRun(run, workflow, reason, is_cancelled, attempts)


def try_again(db: Database, run: RunId) -> None:
    """End the quarantine of a run because a person sent a command: the next claim decodes it again. Call inside a
    transaction."""
    if forget(db, ItemKind.RUN, run):
        db.connection.run("take_slots_again", {"run": run})


def note(db: Database, kind: ItemKind, id: str, reason: str, now: datetime) -> None:
    """Record a quarantined item. Call inside a transaction."""
    values = {"kind": kind.value, "id": id, "reason": free_text(reason), "now": time_text(now)}
    db.connection.run("note_quarantined", values)


def forget(db: Database, kind: ItemKind, id: str) -> bool:
    """Remove an item from the quarantine; False if it was not quarantined. Call inside a transaction."""
    return db.connection.run("forget_quarantined", (kind.value, id)) == 1

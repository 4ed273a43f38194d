"""Creates runs, and stores the commands that people submit."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from ork.errors import NotFoundError
from ork.model.ids import RunId
from ork.model.run import CommandKind, NewRun, Run, RunCommand
from ork.state.records import Accepted, TooLate
from ork.state.refusals import check_same_request, is_too_late
from ork.state.rows import is_command, text_of
from ork.state.sqlite.database import Database
from ork.state.sqlite.quarantine import try_again
from ork.state.sqlite.rows import command_of, free_text, json_text, time_text


def create_runs(db: Database, runs: Sequence[NewRun], now: datetime) -> tuple[Run, ...]:
    if not runs:
        return ()
    with db.changing() as changed:
        return tuple(run for run, _ in db.runs(add_runs(db, runs, now, changed)))


def add_runs(db: Database, runs: Sequence[NewRun], now: datetime, changed: int) -> list[str]:
    """Add the runs and return the ids of the new or existing ones. Call inside a transaction."""
    for version in {new.version for new in runs}:
        if db.connection.row("known_version", {"id": version}) is None:
            raise NotFoundError(f"There is no version {version}.", hint="Deploy the workflow first.")
    return [_create(db, new, now, changed) for new in runs]


def _create(db: Database, new: NewRun, now: datetime, changed: int) -> str:
    values = {
        "id": new.id,
        "workflow": new.workflow,
        "version": new.version,
        "trigger": new.trigger.value,
        "params": json_text(new.params),
        "now": time_text(now),
        "scheduled_for": time_text(new.scheduled_for),
        "priority": new.priority,
        "key": new.key,
        "fresh": int(new.fresh),
        "parent": new.parent,
        "started_by": free_text(new.started_by),
        "changed": changed,
    }
    if db.connection.run("add_run", values) == 1:
        return new.id
    return _existing(db, new)


def _existing(db: Database, new: NewRun) -> str:
    """The id of the existing run with the same id, key or scheduled time."""
    if db.run(new.id) is not None:
        return new.id
    by_key = db.connection.row("find_by_key", {"workflow": new.workflow, "key": new.key})
    if by_key is not None:
        existing = db.runs([by_key[0]])[0][0]
        check_same_request(new, existing)
        return existing.id
    slot = {"workflow": new.workflow, "scheduled_for": time_text(new.scheduled_for)}
    return str(db.connection.rows("find_by_slot", slot)[0][0])


def submit_command(db: Database, command: RunCommand, now: datetime) -> Accepted | TooLate | None:
    with db.connection.reading():
        run = db.run(command.run)
    if run is None:
        return None
    if is_too_late(command.kind, run.status):
        return TooLate(run)
    with db.changing() as changed:
        # Read again under the lock, because the run may have ended meanwhile. The wake-up is then unnecessary.
        run = db.runs([command.run])[0][0]
        if is_too_late(command.kind, run.status):
            return TooLate(run)
        return _accept(db, command, now, changed)


def _accept(db: Database, command: RunCommand, now: datetime, changed: int) -> Accepted:
    asked = {
        "run": command.run,
        "kind": command.kind.value,
        "by": free_text(command.by),
        "task": command.task,
        "everything": int(command.everything),
        "comment": free_text(command.comment),
        "now": time_text(now),
    }
    (command_id,) = db.connection.rows("add_command", asked)[0]
    try_again(db, command.run)
    cancels = int(command.kind is CommandKind.CANCEL)
    db.connection.run(
        "call_for_attention", {"run": command.run, "changed": changed, "cancels": cancels, "now": asked["now"]}
    )
    return Accepted(db.runs([command.run])[0][0], text_of(command_id))


def pending_commands(db: Database, run: RunId) -> tuple[RunCommand, ...]:
    return tuple(command_of(row) for row in db.connection.rows("pending_commands", {"run": run}) if is_command(row))

"""The settings and identity that all processes of an installation share."""

from __future__ import annotations

from ork.model.ids import RunId
from ork.model.installation import Control, Mode, SharedSettings
from ork.state.installation import attempts_are_active, settings_of, settings_text
from ork.state.sqlite.database import Database
from ork.state.sqlite.rows import free_text, moment_of, time_text


def read_shared_settings(db: Database) -> SharedSettings | None:
    row = db.connection.row("read_shared_settings")
    return None if row is None else settings_of(row[0])


def record_shared_settings(db: Database, settings: SharedSettings) -> SharedSettings:
    with db.connection.writing():
        db.connection.run("record_shared_settings", {"text": settings_text(settings)})
        recorded = read_shared_settings(db)
    assert recorded is not None
    return recorded


def replace_shared_settings(db: Database, settings: SharedSettings, *, force: bool = False) -> None:
    with db.changing():
        active = db.connection.rows("count_active_attempts")[0][0]
        if active and not force:
            raise attempts_are_active(active)
        db.connection.run("replace_shared_settings", {"text": settings_text(settings)})
        db.connection.run("release_everything")
        db.connection.run("forget_all_schedulers")


def read_note(db: Database, name: str) -> str | None:
    row = db.connection.row("read_note", {"name": f"note {name}"})
    return None if row is None else bytes(row[0]).decode()


def swap_note(db: Database, name: str, before: str | None, after: str) -> bool:
    values = {"name": f"note {name}", "after": after.encode()}
    with db.connection.writing():
        if before is None:
            return db.connection.run("add_note", values) == 1
        return db.connection.run("replace_note", {**values, "before": before.encode()}) == 1


def set_control(db: Database, control: Control) -> None:
    values = {
        "target": free_text(control.target),
        "mode": control.mode.value,
        "by": free_text(control.by),
        "at": time_text(control.at),
        "reason": free_text(control.reason),
    }
    with db.changing():
        db.connection.run("set_control", values)


def clear_control(db: Database, target: str) -> bool:
    with db.changing():
        return db.connection.run("clear_control", {"target": free_text(target)}) == 1


def list_controls(db: Database) -> tuple[Control, ...]:
    rows = db.connection.rows("list_controls")
    return tuple(Control(target, Mode(mode), by, moment_of(at), reason) for target, mode, by, at, reason in rows)


def runs_with_commands(db: Database) -> tuple[RunId, ...]:
    return tuple(RunId(run) for (run,) in db.connection.rows("runs_with_commands"))

"""What belongs to the installation as a whole."""

from __future__ import annotations

from ork.model.installation import SharedSettings
from ork.state.installation import attempts_are_active, settings_of, settings_text
from ork.state.sqlite.database import Database


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

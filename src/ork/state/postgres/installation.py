"""Settings, identity and controls of the whole installation."""

from __future__ import annotations

from ork.model.ids import RunId
from ork.model.installation import Control, Mode, SharedSettings
from ork.state.installation import attempts_are_active, settings_of, settings_text
from ork.state.postgres.database import Asked, Database
from ork.state.postgres.rows import free_text


async def read_shared_settings(db: Asked) -> SharedSettings | None:
    row = await db.row("read_shared_settings")
    return None if row is None else settings_of(row[0])


async def record_shared_settings(db: Database, settings: SharedSettings) -> SharedSettings:
    async with db.writing() as session:
        await session.run("record_shared_settings", settings_text(settings))
        recorded = await read_shared_settings(session)
    assert recorded is not None
    return recorded


async def replace_shared_settings(db: Database, settings: SharedSettings, *, force: bool = False) -> None:
    async with db.writing() as session:
        await session.run("replace_shared_settings", settings_text(settings))
        await session.rows("forget_all_schedulers")
        # Counted last: no run has an owner any more, so no further attempt can start.
        active = (await session.rows("count_active_attempts"))[0][0]
        if active and not force:
            raise attempts_are_active(active)
        await session.notify_others()


async def read_note(db: Database, name: str) -> str | None:
    row = await db.row("read_note", f"note {name}")
    return None if row is None else bytes(row[0]).decode()


async def swap_note(db: Database, name: str, before: str | None, after: str) -> bool:
    if before is None:
        return await db.run("add_note", f"note {name}", after.encode()) == 1
    return await db.run("replace_note", f"note {name}", before.encode(), after.encode()) == 1


async def set_control(db: Database, control: Control) -> None:
    values = (free_text(control.target), control.mode.value, free_text(control.by), control.at)
    async with db.writing() as session:
        await session.run("set_control", *values, free_text(control.reason))
        await session.notify_others()


async def clear_control(db: Database, target: str) -> bool:
    async with db.writing() as session:
        is_gone = await session.run("clear_control", free_text(target)) == 1
        await session.notify_others()
    return is_gone


async def list_controls(db: Database) -> tuple[Control, ...]:
    rows = await db.rows("list_controls")
    return tuple(Control(target, Mode(mode), by, at, reason) for target, mode, by, at, reason in rows)


async def runs_with_commands(db: Database) -> tuple[RunId, ...]:
    return tuple(RunId(run) for (run,) in await db.rows("runs_with_commands"))

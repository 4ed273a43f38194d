"""Versions, workflows and limits."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from ork.compile.content import to_document
from ork.errors import UnreadableError
from ork.model.code import code_text
from ork.model.ids import VersionId
from ork.model.workflow import Rate, Schedule, Version, VersionEntry, WorkflowEntry
from ork.state.postgres.connection import Session
from ork.state.postgres.database import Database
from ork.state.postgres.rows import lenient
from ork.state.records import NO_RATES
from ork.state.refusals import check_owner, still_has_runs
from ork.state.rows import json_text, limit_rows, schedule_of, schedule_text

if TYPE_CHECKING:
    from ork.state.postgres.connection import Session


async def save_version(
    db: Database, version: Version, *, origin: str | None, now: datetime, next_fire: datetime | None = None
) -> bool:
    workflow = version.workflow
    fires = workflow.schedule is not None and workflow.schedule.enabled
    async with db.writing() as session:
        await check_workflow_owner(session, workflow.name, origin)
        is_new, is_written = await _write_version(db, session, version, now)
        await session.run(
            "set_current_version", workflow.name, version.id, now, origin, schedule_text(workflow.schedule),
            workflow.max_active_runs, fires, next_fire if fires else None,
        )  # fmt: skip
        await session.notify_others()
    if is_written:
        db.versions.remember(version)
    return is_new


async def add_version(db: Database, version: Version, now: datetime) -> bool:
    async with db.writing() as session:
        is_new, is_written = await _write_version(db, session, version, now)
    if is_written:
        db.versions.remember(version)
    return is_new


async def _write_version(db: Database, session: Session, version: Version, now: datetime) -> tuple[bool, bool]:
    """Whether the version is new, and whether it was written: because it is new, or was damaged."""
    document, code = json_text(to_document(version.workflow)), code_text(version.code)
    added = await session.run(
        "add_version", version.id, version.workflow.name, version.root, version.source, document, code, now,
        await session.next_change(),
    )  # fmt: skip
    return added == 1, added == 1 or await _repair(db, session, version, document, code)


async def _repair(db: Database, session: Session, version: Version, document: str, code: str | None) -> bool:
    """Rewrite the document of a version that is damaged. Versions never change otherwise."""
    try:
        await db.version(session, version.id)
    except UnreadableError:
        await session.run("repair_version", version.id, version.root, version.source, document, code)
        return True
    return False


async def set_enabled(db: Database, workflow: str, enabled: bool, *, next_fire: datetime | None = None) -> bool:
    async with db.writing() as session:
        row = await session.row("lock_workflow", workflow)
        if row is None:
            return False
        schedule = _known_schedule(row[0])
        fires = enabled and schedule is not None and schedule.enabled
        await session.run("set_enabled", workflow, enabled, fires, next_fire)
        await session.notify_others()
    return True


def _known_schedule(text: str | None) -> Schedule | None:
    """The stored schedule; None also if it cannot be decoded, since it does not fire then."""
    try:
        return schedule_of(text)
    except Exception:
        return None


async def delete_workflow(db: Database, workflow: str) -> bool:
    async with db.writing() as session:
        if await session.row("lock_workflow", workflow) is None:
            return False
        if (await session.rows("has_unfinished_runs", workflow))[0][0]:
            raise still_has_runs(workflow)
        await check_workflow_owner(session, workflow, None)
        await session.run("delete_workflow", workflow)
        await session.notify_others()
    return True


async def set_limits(db: Database, limits: Mapping[str, int], rates: Mapping[str, Rate] = NO_RATES) -> None:
    if sorted(map(tuple, await db.rows("limits_and_rates"))) == limit_rows(limits, rates):
        return  # every scheduler sets them when it starts: unchanged limits wake no one
    async with db.writing() as session:
        await session.rows("lock_all_limits")
        await session.run("forget_limits", list(limits))
        await session.write("set_limits", sorted(limits.items()))
        await session.run("forget_rates", list(rates))
        await session.write("set_rates", [(name, rate.count, rate.seconds) for name, rate in sorted(rates.items())])
        await session.notify_others()


async def get_version(db: Database, version: VersionId) -> Version | None:
    return await db.version(db, version)


async def list_versions(db: Database, workflow: str, limit: int = 20) -> tuple[VersionEntry, ...]:
    rows = await db.rows("list_versions", workflow, limit)
    return tuple(VersionEntry(VersionId(id), lenient.time(saved_at), source) for id, saved_at, source in rows)


async def get_workflow(db: Database, name: str) -> WorkflowEntry | None:
    row = await db.row("get_workflow", name)
    return None if row is None else lenient.workflow(row)


async def list_workflows(db: Database) -> tuple[WorkflowEntry, ...]:
    return tuple(lenient.workflow(row) for row in await db.rows("list_workflows"))


async def signing_key(db: Database) -> bytes:
    return bytes((await db.rows("signing_key"))[0][0])


async def check_workflow_owner(session: Session, workflow: str, origin: str | None) -> None:
    row = await session.row("owner_of_workflow", workflow)
    check_owner(workflow, None if row is None else row[0], origin)

"""Versions, workflows and limits."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from ork.compile.content import to_document
from ork.errors import UnreadableError
from ork.model.code import code_text
from ork.model.ids import VersionId
from ork.model.workflow import Rate, Version, VersionEntry, WorkflowEntry
from ork.state.records import NO_RATES
from ork.state.refusals import check_owner, still_has_runs
from ork.state.rows import limit_rows
from ork.state.sqlite.database import Database
from ork.state.sqlite.rows import json_text, lenient, schedule_text, time_text

_AFTER_ALL_NAMES = "\U0010ffff"


def save_version(
    db: Database, version: Version, *, origin: str | None, now: datetime, next_fire: datetime | None = None
) -> bool:
    workflow = version.workflow
    with db.changing() as changed:
        check_workflow_owner(db, workflow.name, origin)
        is_new, is_written = _write_version(db, version, now, changed)
        db.connection.run(
            "set_current_version",
            {
                "name": workflow.name,
                "version": version.id,
                "now": time_text(now),
                "origin": origin,
                "schedule": schedule_text(workflow.schedule),
                "fires": int(workflow.schedule is not None and workflow.schedule.enabled),
                "next_fire": time_text(next_fire),
                "max_active_runs": workflow.max_active_runs,
            },
        )
    if is_written:
        db.versions.remember(version)
    return is_new


def add_version(db: Database, version: Version, now: datetime) -> bool:
    if db.connection.row("known_version", {"id": version.id}) is not None and not _is_damaged(db, version.id):
        return False
    with db.changing() as changed:
        is_new, is_written = _write_version(db, version, now, changed)
    if is_written:
        db.versions.remember(version)
    return is_new


def _write_version(db: Database, version: Version, now: datetime, changed: int) -> tuple[bool, bool]:
    """Whether the version is new, and whether it was written: because it is new, or was damaged."""
    is_new = db.connection.row("known_version", {"id": version.id}) is None
    if not is_new and not _is_damaged(db, version.id):
        return False, False
    db.connection.run(
        "add_version",
        {
            "id": version.id,
            "workflow": version.workflow.name,
            "root": version.root,
            "source": version.source,
            "document": json_text(to_document(version.workflow)),
            "code": code_text(version.code),
            "now": time_text(now),
            "changed": changed,
        },
    )
    return is_new, True


def _is_damaged(db: Database, version: VersionId) -> bool:
    try:
        db.version(version)
    except UnreadableError:
        return True
    return False


def set_enabled(db: Database, workflow: str, enabled: bool, *, next_fire: datetime | None = None) -> bool:
    values = {"name": workflow, "enabled": int(enabled), "next_fire": time_text(next_fire)}
    with db.changing():
        return db.connection.run("set_enabled", values) == 1


def delete_workflow(db: Database, workflow: str) -> bool:
    with db.changing():
        if db.connection.rows("has_unfinished_runs", {"workflow": workflow})[0][0]:
            raise still_has_runs(workflow)
        check_workflow_owner(db, workflow, None)
        return db.connection.run("delete_workflow", {"workflow": workflow}) == 1


def get_version(db: Database, version: VersionId) -> Version | None:
    return db.version(version)


def list_versions(db: Database, workflow: str, limit: int = 20) -> tuple[VersionEntry, ...]:
    rows = db.connection.rows("list_versions", {"workflow": workflow, "limit": limit})
    return tuple(VersionEntry(VersionId(id), lenient.time(saved_at), source) for id, saved_at, source in rows)


def set_limits(db: Database, limits: Mapping[str, int], rates: Mapping[str, Rate] = NO_RATES) -> None:
    if sorted(db.connection.rows("limits_and_rates")) == limit_rows(limits, rates):
        return  # every scheduler sets them when it starts: unchanged limits wake no one
    with db.changing():
        db.connection.run("forget_limits")
        db.connection.run_many("add_limit", sorted(limits.items()))
        db.connection.run("forget_rates")
        db.connection.run_many("add_rate", [(name, rate.count, rate.seconds) for name, rate in sorted(rates.items())])


def get_workflow(db: Database, name: str) -> WorkflowEntry | None:
    row = db.connection.row("list_workflows", {"first": name, "last": name})
    return None if row is None else lenient.workflow(row)


def list_workflows(db: Database) -> tuple[WorkflowEntry, ...]:
    rows = db.connection.rows("list_workflows", {"first": "", "last": _AFTER_ALL_NAMES})
    return tuple(lenient.workflow(row) for row in rows)


def signing_key(db: Database) -> bytes:
    return bytes(db.connection.rows("signing_key")[0][0])


def check_workflow_owner(db: Database, workflow: str, origin: str | None) -> None:
    row = db.connection.row("owner_of_workflow", {"workflow": workflow})
    check_owner(workflow, None if row is None else row[0], origin)

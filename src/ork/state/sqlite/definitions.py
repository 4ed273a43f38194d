"""Versions, workflows and limits."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from ork.compile.content import to_document
from ork.model.workflow import Rate, Version, WorkflowEntry
from ork.state.sqlite.database import Database
from ork.state.sqlite.rows import json_text, schedule_text, time_text, workflow_of

_AFTER_ALL_NAMES = "\U0010ffff"


def save_version(db: Database, version: Version, origin: str | None, now: datetime) -> bool:
    workflow = version.workflow
    with db.changing():
        is_new = db.connection.row("known_version", {"id": version.id}) is None
        if is_new:
            db.connection.run(
                "add_version",
                {
                    "id": version.id,
                    "workflow": workflow.name,
                    "root": version.root,
                    "source": version.source,
                    "document": json_text(to_document(workflow)),
                },
            )
        db.connection.run(
            "set_current_version",
            {
                "name": workflow.name,
                "version": version.id,
                "now": time_text(now),
                "origin": origin,
                "schedule": schedule_text(workflow.schedule),
                "max_active_runs": workflow.max_active_runs,
            },
        )
    return is_new


def set_enabled(db: Database, workflow: str, enabled: bool) -> bool:
    with db.changing():
        return db.connection.run("set_enabled", {"name": workflow, "enabled": int(enabled)}) == 1


def set_limits(db: Database, limits: Mapping[str, int], rates: Mapping[str, Rate]) -> None:
    with db.changing():
        db.connection.run("forget_limits")
        db.connection.run_many("add_limit", sorted(limits.items()))
        db.connection.run("forget_rates")
        db.connection.run_many("add_rate", [(name, rate.count, rate.seconds) for name, rate in sorted(rates.items())])


def get_workflow(db: Database, name: str) -> WorkflowEntry | None:
    row = db.connection.row("list_workflows", {"first": name, "last": name})
    return None if row is None else workflow_of(row)


def list_workflows(db: Database) -> tuple[WorkflowEntry, ...]:
    rows = db.connection.rows("list_workflows", {"first": "", "last": _AFTER_ALL_NAMES})
    return tuple(workflow_of(row) for row in rows)


def signing_key(db: Database) -> bytes:
    return bytes(db.connection.rows("signing_key")[0][0])

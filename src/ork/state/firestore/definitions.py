"""Versions, workflows and their schedules."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from ork.compile.content import to_document
from ork.errors import UnreadableError
from ork.model.code import code_text
from ork.model.ids import VersionId
from ork.model.location import location_of
from ork.model.workflow import Version, VersionEntry, WorkflowEntry
from ork.state.firestore.commit import doc_id
from ork.state.firestore.database import Database, Plan, wake
from ork.state.firestore.documents import lenient
from ork.state.firestore.values import micros, moment_of
from ork.state.firestore.wire import Doc, Put, Query
from ork.state.lenient import entries
from ork.state.records import ScheduleEntry
from ork.state.refusals import check_owner, still_has_runs
from ork.state.rows import json_text, schedule_text

_PART = 900_000  # bytes of a version's document in one document of the database
_NOT_PLANNED = 0  # as the time a schedule is due


# ── versions ─────────────────────────────────────────────────────────────────────────────────────


def version_path(id: str) -> str:
    return f"versions/{doc_id(id)}"


async def read_version(db: Database, id: VersionId) -> Version | None:
    doc = await db.wire.get(version_path(id))
    return None if doc is None else await _decoded(db, id, doc)


async def _decoded(db: Database, id: VersionId, doc: Doc) -> Version:
    fields = doc.fields
    parts = [fields["document"]]
    if fields["parts"] > 1:
        docs = await db.wire.get_all([f"{doc.path}/parts/{number}" for number in range(1, fields["parts"])])
        parts += [docs[path].fields["document"] for path in sorted(docs, key=lambda path: int(path.rpartition("/")[2]))]
    try:
        text = zlib.decompress(b"".join(parts)).decode()
    except (zlib.error, TypeError, ValueError) as problem:
        text = f"damaged: {problem}"
    return db.known.decoded(id, fields["root"], fields.get("source"), text, fields.get("code"))


async def get_version(db: Database, version: VersionId) -> Version | None:
    return await db.version(version)


async def list_versions(db: Database, workflow: str, limit: int = 20) -> tuple[VersionEntry, ...]:
    select = ("id", "saved_at", "source")
    docs = await db.wire.query(Query("versions", (("workflow", "==", workflow),), ("-saved",), limit, select))
    return tuple(
        VersionEntry(VersionId(doc.fields["id"]), moment_of(doc.fields["saved_at"]), doc.fields.get("source"))
        for doc in docs
    )


def _version_puts(version: Version, now: datetime, read: int, guard: bool | int) -> list[Put]:
    packed = zlib.compress(json_text(to_document(version.workflow)).encode(), 9)
    parts = [packed[start : start + _PART] for start in range(0, len(packed), _PART)]
    fields = {
        "id": version.id, "workflow": version.workflow.name, "root": version.root, "source": version.source,
        "saved": read, "saved_at": micros(now), "document": parts[0], "parts": len(parts),
        "code": code_text(version.code),
    }  # fmt: skip
    path = version_path(version.id)
    own = Put(path, fields, guard)
    return [own, *(Put(f"{path}/parts/{number}", {"document": part}) for number, part in enumerate(parts[1:], 1))]


async def save_version(
    db: Database, version: Version, *, origin: str | None, now: datetime, next_fire: datetime | None = None
) -> bool:
    name = version.workflow.name

    async def plan() -> Plan[bool]:
        paths = [workflow_path(name), version_path(version.id)]
        docs = await db.wire.get_all(paths)
        before, saved = (docs.get(path) for path in paths)
        await _check_owner(db, before, name, origin)
        puts = await _missing_puts(db, version, saved, now)
        kept = await db.version(version.id) if not puts else version
        put = _saved_workflow(before, kept or version, origin, now, next_fire)
        if put is not None:
            puts.append(put)
        return Plan([*puts, wake(db)] if puts else [], saved is None)

    is_new = await db.change(plan)
    db.known.remember(version) if is_new else None
    return is_new


async def add_version(db: Database, version: Version, now: datetime) -> bool:
    async def plan() -> Plan[bool]:
        saved = await db.wire.get(version_path(version.id))
        return Plan(await _missing_puts(db, version, saved, now), saved is None)

    is_new = await db.change(plan)
    db.known.remember(version) if is_new else None
    return is_new


async def _missing_puts(db: Database, version: Version, saved: Doc | None, now: datetime) -> list[Put]:
    """Nothing if the version is stored and can be read."""
    if saved is not None and await _is_readable(db, version.id, saved):
        return []
    return _version_puts(version, now, db.wire.last_read, False if saved is None else saved.time)


async def _is_readable(db: Database, id: VersionId, doc: Doc) -> bool:
    try:
        return db.known.get(id) is not None or bool(await _decoded(db, id, doc))
    except UnreadableError:
        return False


# ── workflows ────────────────────────────────────────────────────────────────────────────────────


def workflow_path(name: str) -> str:
    return f"workflows/{doc_id(name)}"


def _saved_workflow(
    before: Doc | None, version: Version, origin: str | None, now: datetime, next_fire: datetime | None
) -> Put | None:
    """None: it is already so."""
    workflow = version.workflow
    if before is not None and before.fields["version"] == version.id:
        old = before.fields.get("origin")
        is_handed_on = location_of(origin) is not None or location_of(old) is not None
        fields = {**before.fields, "enabled": True, "origin": origin if is_handed_on else old}
    else:
        fields = {
            "name": workflow.name, "version": version.id, "enabled": True, "deployed_at": micros(now),
            "origin": origin, "schedule": schedule_text(workflow.schedule), "most": workflow.max_active_runs,
        }  # fmt: skip
    _plan_fire(before, fields, next_fire)
    if before is not None and fields == before.fields:
        return None
    return Put(workflow_path(workflow.name), fields, False if before is None else before.time)


def _plan_fire(before: Doc | None, fields: dict[str, Any], next_fire: datetime | None) -> None:
    """The workflow is written: its schedule takes this time, unless it was on and is as it was."""
    due = fields.pop("due", None) if before is None else before.fields.get("due")
    fields.pop("due", None)
    if not fires(fields):
        return
    is_as_it_was = before is not None and fires(before.fields) and before.fields["schedule"] == fields["schedule"]
    fields["due"] = due if is_as_it_was else _NOT_PLANNED if next_fire is None else micros(next_fire)


def fires(fields: dict[str, Any]) -> bool:
    """The workflow and its schedule are both on. A schedule that cannot be read says nothing of being off."""
    if not fields["enabled"] or fields.get("schedule") is None:
        return False
    try:
        return bool(json.loads(fields["schedule"])[3])
    except (ValueError, TypeError, IndexError):
        return True


async def _check_owner(db: Database, before: Doc | None, name: str, origin: str | None) -> None:
    owner = None if before is None else location_of(before.fields.get("origin"))
    if owner is not None and await db.wire.get(f"locations/{doc_id(owner)}") is None:
        owner = None
    check_owner(name, owner, origin)


async def set_enabled(db: Database, workflow: str, enabled: bool, *, next_fire: datetime | None = None) -> bool:
    async def plan() -> Plan[bool]:
        doc = await db.wire.get(workflow_path(workflow))
        if doc is None:
            return Plan((), False)
        return Plan([enabled_put(doc, enabled, next_fire), wake(db)], True)

    return await db.change(plan)


def enabled_put(doc: Doc, enabled: bool, next_fire: datetime | None = None) -> Put:
    fields = {**doc.fields, "enabled": enabled}
    _plan_fire(doc, fields, next_fire)
    return Put(doc.path, fields, doc.time)


async def delete_workflow(db: Database, workflow: str) -> bool:
    async def plan() -> Plan[bool]:
        doc = await db.wire.get(workflow_path(workflow))
        if doc is None:
            return Plan((), False)
        unfinished = ["pending", "running", "paused"]
        where = (("workflow", "==", workflow), ("status", "in", unfinished))
        if await db.wire.query(Query("runs", where, (), 1, ())):
            raise still_has_runs(workflow)
        await _check_owner(db, doc, workflow, None)
        return Plan([wake(db), Put(doc.path, None, doc.time)], True)

    return await db.change(plan)


async def get_workflow(db: Database, name: str) -> WorkflowEntry | None:
    doc = await db.wire.get(workflow_path(name))
    return None if doc is None else _entry(doc)


async def list_workflows(db: Database) -> tuple[WorkflowEntry, ...]:
    return tuple(sorted(map(_entry, await db.wire.query(Query("workflows"))), key=lambda entry: entry.name))


def _entry(doc: Doc) -> WorkflowEntry:
    fields = doc.fields
    return lenient.workflow(
        (
            fields["name"],
            fields["version"],
            fields["enabled"],
            fields["deployed_at"],
            fields.get("origin"),
            fields.get("schedule"),
        )
    )


# ── schedules ────────────────────────────────────────────────────────────────────────────────────


def schedule_entries(docs: Iterable[Doc]) -> tuple[ScheduleEntry, ...]:
    rows = [
        (
            doc.fields["name"], doc.fields["version"], doc.fields.get("schedule"), fires(doc.fields),
            doc.fields.get("due") or None,
        )
        for doc in docs
    ]  # fmt: skip
    return entries(sorted(rows), _planned)


def _planned(due: Any) -> datetime | None:
    return None if due is None else moment_of(due)


async def list_schedules(db: Database) -> tuple[ScheduleEntry, ...]:
    return schedule_entries(await db.wire.query(Query("workflows")))


async def due_schedules(db: Database, now: datetime) -> tuple[ScheduleEntry, ...]:
    docs = await db.wire.query(Query("workflows", (("due", "<=", micros(now)),)))
    return tuple(entry for entry in schedule_entries(docs) if entry.unreadable is None)


async def next_fire_at(db: Database, after: datetime) -> datetime | None:
    found = await db.wire.query(Query("workflows", (("due", ">", micros(after)),), ("due",), 1, ("due",)))
    return moment_of(found[0].fields["due"]) if found else None

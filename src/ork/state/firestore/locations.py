"""Code locations."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any

from ork.model.location import LocationEntry, LocationScan, location_of
from ork.model.record import replaced
from ork.state.firestore.commit import doc_id
from ork.state.firestore.database import Database, Plan, wake
from ork.state.firestore.definitions import enabled_put
from ork.state.firestore.documents import moment_or_none
from ork.state.firestore.values import clean, micros
from ork.state.firestore.wire import Doc, Put, Query
from ork.state.lenient import damaged_or_not

_TIMES = ("due_at", "held_until", "looked_at", "changed_at")
_FIELDS = LocationEntry._fields


def _path(name: str) -> str:
    return f"locations/{doc_id(name)}"


def _entry(doc: Doc) -> LocationEntry:
    columns: dict[str, Any] = {name: doc.fields.get(name) for name in _FIELDS}
    return damaged_or_not(LocationEntry(**columns), moment_or_none)


def _put(entry: LocationEntry, guard: bool | int, *, is_asked: bool) -> Put:
    fields: dict[str, Any] = {name: getattr(entry, name) for name in _FIELDS}
    fields |= {name: None if fields[name] is None else micros(fields[name]) for name in _TIMES}
    fields |= {name: None if fields[name] is None else clean(fields[name]) for name in ("error", "output")}
    return Put(_path(entry.name), fields | {"is_asked": is_asked}, guard)


async def set_locations(db: Database, sources: Mapping[str, str], now: datetime) -> None:
    async def plan() -> Plan[None]:
        docs = {doc.fields["name"]: doc for doc in await db.wire.query(Query("locations"))}
        if {name: doc.fields["source"] for name, doc in docs.items()} == dict(sources):
            return Plan((), None)
        gone = docs.keys() - sources.keys()
        puts = [Put(docs[name].path, None, docs[name].time) for name in gone]
        for doc in await db.wire.query(Query("workflows")) if gone else []:
            if location_of(doc.fields.get("origin")) in gone:
                puts.append(enabled_put(doc, False))
        for name, source in sources.items():
            doc_before = docs.get(name)
            if doc_before is None or doc_before.fields["source"] != source:
                guard = False if doc_before is None else doc_before.time
                puts.append(_put(LocationEntry(name, source, now), guard, is_asked=False))
        return Plan([wake(db), *puts], None)

    await db.change(plan)


async def list_locations(db: Database) -> tuple[LocationEntry, ...]:
    return tuple(sorted(map(_entry, await db.wire.query(Query("locations"))), key=lambda entry: entry.name))


async def ask_refresh(db: Database, location: str, now: datetime) -> bool:
    async def plan() -> Plan[bool]:
        doc = await db.wire.get(_path(location))
        if doc is None:
            return Plan((), False)
        entry = _entry(doc)
        asked = replaced(entry, due_at=min(entry.due_at, now), seen=entry.digest)
        return Plan([_put(asked, doc.time, is_asked=True), wake(db)], True)

    return await db.change(plan)


async def take_location(
    db: Database, names: Collection[str], now: datetime, hold_seconds: float
) -> LocationEntry | None:
    async def plan() -> Plan[LocationEntry | None]:
        docs = await db.wire.get_all([_path(name) for name in names])
        free = [(entry, doc) for doc in docs.values() if _is_free(entry := _entry(doc), now)]
        if not free:
            return Plan((), None)
        entry, doc = min(free, key=lambda pair: (pair[0].due_at, pair[0].name))
        held = replaced(entry, held_until=now + timedelta(seconds=hold_seconds))
        return Plan([_put(held, doc.time, is_asked=False)], held)

    return await db.change(plan)


def _is_free(entry: LocationEntry, now: datetime) -> bool:
    return entry.due_at <= now and (entry.held_until is None or entry.held_until <= now)


async def _held(db: Database, held: LocationEntry) -> tuple[Doc, LocationEntry] | None:
    doc = await db.wire.get(_path(held.name))
    entry = None if doc is None else _entry(doc)
    is_same = entry is not None and (entry.source, entry.held_until) == (held.source, held.held_until)
    return (doc, entry) if doc is not None and entry is not None and is_same else None


async def keep_location(db: Database, held: LocationEntry, now: datetime, hold_seconds: float) -> LocationEntry | None:
    until = now + timedelta(seconds=hold_seconds)

    async def plan() -> Plan[LocationEntry | None]:
        found = await _held(db, held)
        if found is None:
            return Plan((), None)
        doc, entry = found
        put = _put(replaced(entry, held_until=until), doc.time, is_asked=doc.fields["is_asked"])
        return Plan([put], replaced(held, held_until=until))

    return await db.change(plan)


async def settle_location(
    db: Database, held: LocationEntry, scan: LocationScan, due_at: datetime, now: datetime
) -> bool:
    async def plan() -> Plan[bool]:
        found = await _held(db, held)
        if found is None:
            return Plan((), False)
        doc, before = found
        is_changed = scan.digest is not None and scan.digest != before.digest
        settled = replaced(
            before,
            held_until=None,
            due_at=now if doc.fields["is_asked"] else due_at,
            looked_at=now,
            seen=scan.seen,
            digest=scan.digest or before.digest,
            changed_at=now if is_changed else before.changed_at,
            code=scan.code,
            error=scan.error,
            output=scan.output,
        )
        return Plan([_put(settled, doc.time, is_asked=False)], True)

    return await db.change(plan)


async def next_location_at(db: Database, names: Collection[str]) -> datetime | None:
    docs = await db.wire.get_all([_path(name) for name in names])
    entries = map(_entry, docs.values())
    return min((entry.held_until or entry.due_at for entry in entries), default=None)

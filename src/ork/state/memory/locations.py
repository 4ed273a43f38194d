"""Code locations, in memory."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from ork.model.location import LocationEntry, LocationScan, location_of
from ork.model.record import Record, replaced
from ork.state.refusals import check_owner

if TYPE_CHECKING:
    from ork.state.memory.rows import Shared


class LocationRow(Record, frozen=False):
    entry: LocationEntry
    is_asked: bool = False


class LocationsInMemory:
    """A part of the memory store."""

    def _used(self) -> Shared:
        raise AssertionError("the store defines this")

    def _changing(self) -> Shared:
        raise AssertionError("the store defines this")

    async def set_locations(self, sources: Mapping[str, str], now: datetime) -> None:
        state = self._used()
        known = {name: row.entry.source for name, row in state.locations.items()}
        if known == dict(sources):
            return
        self._changing()
        for gone in known.keys() - sources.keys():
            del state.locations[gone]
            for name, entry in state.workflows.items():
                if location_of(entry.origin) == gone:
                    state.workflows[name] = replaced(entry, enabled=False)
                    state.next_fires.pop(name, None)
        for name, source in sources.items():
            if known.get(name) != source:
                state.locations[name] = LocationRow(LocationEntry(name, source, now))

    async def list_locations(self) -> tuple[LocationEntry, ...]:
        return tuple(row.entry for _, row in sorted(self._used().locations.items()))

    async def ask_refresh(self, location: str, now: datetime) -> bool:
        row = self._changing().locations.get(location)
        if row is not None:
            due_at = min(row.entry.due_at, now)
            row.entry, row.is_asked = replaced(row.entry, due_at=due_at, seen=row.entry.digest), True
        return row is not None

    async def take_location(self, names: Collection[str], now: datetime, hold_seconds: float) -> LocationEntry | None:
        rows = [row for name, row in self._used().locations.items() if name in names and _is_free(row.entry, now)]
        if not rows:
            return None
        row = min(rows, key=lambda row: (row.entry.due_at, row.entry.name))
        row.entry, row.is_asked = replaced(row.entry, held_until=now + timedelta(seconds=hold_seconds)), False
        return row.entry

    async def keep_location(self, held: LocationEntry, now: datetime, hold_seconds: float) -> LocationEntry | None:
        row = self._held(held)
        if row is None:
            return None
        row.entry = replaced(row.entry, held_until=now + timedelta(seconds=hold_seconds))
        return replaced(held, held_until=row.entry.held_until)

    async def settle_location(self, held: LocationEntry, scan: LocationScan, due_at: datetime, now: datetime) -> bool:
        row = self._held(held)
        if row is None:
            return False
        before = row.entry
        changed = scan.digest is not None and scan.digest != before.digest
        row.entry = replaced(
            before,
            held_until=None,
            due_at=now if row.is_asked else due_at,
            looked_at=now,
            seen=scan.seen,
            digest=scan.digest or before.digest,
            changed_at=now if changed else before.changed_at,
            code=scan.code,
            error=scan.error,
            output=scan.output,
        )
        return True

    async def next_location_at(self, names: Collection[str]) -> datetime | None:
        entries = [row.entry for name, row in self._used().locations.items() if name in names]
        return min((entry.held_until or entry.due_at for entry in entries), default=None)

    def _held(self, held: LocationEntry) -> LocationRow | None:
        row = self._used().locations.get(held.name)
        is_same = row is not None and (row.entry.source, row.entry.held_until) == (held.source, held.held_until)
        return row if is_same else None

    def _check_owner(self, workflow: str, origin: str | None) -> None:
        state = self._used()
        entry = state.workflows.get(workflow)
        owner = None if entry is None else location_of(entry.origin)
        check_owner(workflow, owner if owner in state.locations else None, origin)


def _is_free(entry: LocationEntry, now: datetime) -> bool:
    return entry.due_at <= now and (entry.held_until is None or entry.held_until <= now)

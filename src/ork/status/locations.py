"""Code locations as shown to people: their workflows, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple

from ork.model.location import LocationEntry, location_of, origin_of
from ork.model.workflow import WorkflowEntry
from ork.state.reading import StateReader
from ork.status.shapes import time_json
from ork.status.wire import read_moment, read_time


class LocationView(NamedTuple):
    """`workflows` are in the location now; `vanished` were, and stay disabled until they return."""

    entry: LocationEntry
    workflows: tuple[str, ...]
    vanished: tuple[str, ...]

    def status(self, now: datetime) -> str:
        if self.entry.held_until is not None and self.entry.held_until > now:
            return "looking"
        if self.entry.looked_at is None:
            return "new"
        return "ok" if self.entry.error is None else "failed"


async def view_locations(store: StateReader) -> list[LocationView]:
    """All locations, sorted by name."""
    workflows = await store.list_workflows()
    return [_view(entry, workflows) for entry in await store.list_locations()]


def _view(entry: LocationEntry, workflows: Iterable[WorkflowEntry]) -> LocationView:
    own = [each for each in workflows if location_of(each.origin) == entry.name]
    current = None if entry.digest is None else origin_of(entry.name, entry.digest)
    present = tuple(each.name for each in own if each.origin == current)
    return LocationView(entry, present, tuple(each.name for each in own if each.origin != current))


def location_json(view: LocationView, now: datetime) -> dict[str, Any]:
    entry = view.entry
    error = {"code": entry.code, "message": entry.error, "output": entry.output, "digest": entry.seen}
    return {
        "name": entry.name,
        "source": entry.source,
        "status": view.status(now),
        "digest": entry.digest,
        "workflows": list(view.workflows),
        "vanished": list(view.vanished),
        "looked_at": time_json(entry.looked_at),
        "changed_at": time_json(entry.changed_at),
        "looking_until": time_json(entry.held_until),
        "next_refresh": time_json(entry.due_at),
        "error": None if entry.error is None else error,
    }


def read_location(row: dict[str, Any]) -> LocationEntry:
    """Reads what `location_json` wrote."""
    error = row["error"] or {"code": None, "message": None, "output": None, "digest": row["digest"]}
    return LocationEntry(
        row["name"], row["source"], read_moment(row["next_refresh"]), read_time(row["looking_until"]), row["digest"],
        error["digest"], read_time(row["looked_at"]), read_time(row["changed_at"]), error["code"], error["message"],
        error["output"],
    )  # fmt: skip

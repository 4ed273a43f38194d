"""Lists quarantined items."""

from __future__ import annotations

from ork.model.quarantine import ItemKind, Quarantined
from ork.state.quarantine import damaged_items
from ork.state.sqlite.access import list_tokens
from ork.state.sqlite.database import Database
from ork.state.sqlite.definitions import list_workflows
from ork.state.sqlite.locations import list_locations
from ork.state.sqlite.rows import lenient
from ork.state.sqlite.schedules import list_schedules

_KINDS = frozenset(ItemKind)


def list_quarantined(db: Database, limit: int = 100) -> tuple[Quarantined, ...]:
    """Recorded items, and damaged rows of the small tables, which are looked for on every call."""
    noted = [
        Quarantined(ItemKind(kind), id, reason, lenient.time(since))
        for kind, id, reason, since in db.connection.rows("list_quarantined", {"limit": limit})
        if kind in _KINDS
    ]
    found = damaged_items(list_workflows(db), list_schedules(db), list_locations(db), list_tokens(db))
    return tuple(sorted([*noted, *found], key=lambda item: (item.kind, item.id)))[:limit]

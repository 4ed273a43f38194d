"""Lists quarantined items."""

from __future__ import annotations

from ork.model.quarantine import ItemKind, Quarantined
from ork.state.postgres.access import list_tokens
from ork.state.postgres.database import Database
from ork.state.postgres.definitions import list_workflows
from ork.state.postgres.locations import list_locations
from ork.state.postgres.rows import lenient
from ork.state.postgres.schedules import list_schedules
from ork.state.quarantine import damaged_items

_KINDS = frozenset(kind.value for kind in ItemKind)


async def list_quarantined(db: Database, limit: int = 100) -> tuple[Quarantined, ...]:
    """Recorded items, and damaged rows of the small tables, which are looked for on every call."""
    noted = [
        Quarantined(ItemKind(kind), id, reason, lenient.time(since))
        for kind, id, reason, since in await db.rows("list_quarantined", limit)
        if kind in _KINDS
    ]
    found = damaged_items(
        await list_workflows(db), await list_schedules(db), await list_locations(db), await list_tokens(db)
    )
    return tuple(sorted([*noted, *found], key=lambda item: (item.kind, item.id)))[:limit]

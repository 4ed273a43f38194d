"""Pages: of lists that are read whole anyway, and of rows that may be large."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from ork.state.paging import not_ours

T = TypeVar("T")

# A row may hold an output of 64 KiB: a page ends when it has grown to this.
PAGE_BYTES = 4 << 20


def page_behind(
    entries: Sequence[T], cursor: str | None, limit: int, name_of: Callable[[T], str]
) -> tuple[Sequence[T], str | None]:
    """The entries behind the one the cursor names, and the next cursor; None on the last page."""
    place = 0
    if cursor is not None:
        place = next((at for at, entry in enumerate(entries, 1) if name_of(entry) == cursor), 0)
        if place == 0:
            raise not_ours()
    shown = entries[place : place + limit]
    return shown, name_of(shown[-1]) if place + limit < len(entries) else None


def fitting(rows: Iterable[dict[str, Any]], most_bytes: int = PAGE_BYTES) -> list[dict[str, Any]]:
    """The first rows that together are no larger than a page may be, and at least one."""
    taken: list[dict[str, Any]] = []
    size = 0
    for row in rows:
        size += len(json.dumps(row))
        if taken and size > most_bytes:
            break
        taken.append(row)
    return taken

"""Paging: of lists that are read completely, and of rows that may be large."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from ork.state.paging import not_ours

T = TypeVar("T")

# A row may contain an output of 64 KiB: a page ends when it reaches this size.
PAGE_BYTES = 4 << 20


def page_after(
    entries: Sequence[T], cursor: str | None, limit: int, name_of: Callable[[T], str]
) -> tuple[Sequence[T], str | None]:
    """The entries after the cursor, and the next cursor; None on the last page."""
    start = 0
    if cursor is not None:
        start = next((at for at, entry in enumerate(entries, 1) if name_of(entry) == cursor), 0)
        if start == 0:
            raise not_ours()
    shown = entries[start : start + limit]
    return shown, name_of(shown[-1]) if start + limit < len(entries) else None


def fitting(rows: Iterable[dict[str, Any]], most_bytes: int = PAGE_BYTES) -> list[dict[str, Any]]:
    """The first rows that fit into a page, at least one."""
    taken: list[dict[str, Any]] = []
    size = 0
    for row in rows:
        size += len(json.dumps(row))
        if taken and size > most_bytes:
            break
        taken.append(row)
    return taken

"""Pages of lists that are read whole anyway, because they are short."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from ork.state.paging import not_ours

T = TypeVar("T")


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

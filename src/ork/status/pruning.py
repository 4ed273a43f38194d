"""Deletes old runs with their logs and outputs. A later call finishes what an interrupted one left over."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime

from ork.model.ids import RunId
from ork.state.administration import AdminStore

AT_ONCE = 50

Delete = Callable[[Sequence[RunId]], Awaitable[None]]
"""Deletes all documents of these runs."""


async def prune_some(
    store: AdminStore, delete: Delete, before: datetime, keep_last: int, limit: int = AT_ONCE
) -> tuple[RunId, ...]:
    """Deletes up to `limit` runs that ended before `before`, and what interrupted calls left over."""
    await _sweep(store, delete)
    runs = await store.prune(before, limit, keep_last)
    await _sweep(store, delete)
    return runs


async def _sweep(store: AdminStore, delete: Delete) -> None:
    while left := await store.leftovers(AT_ONCE):
        await delete(left)
        # Recorded last: after a crash before this line, the next call deletes the folders.
        await store.swept(left)

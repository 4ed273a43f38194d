"""Old runs go with their logs and outputs, and whoever is stopped in the middle leaves nothing behind for ever."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime

from ork.model.ids import RunId
from ork.objects.layout import run_folder
from ork.state.administration import AdminStore

AT_ONCE = 50

Delete = Callable[[str], Awaitable[None]]


async def forget_some(
    store: AdminStore, delete: Delete, before: datetime, keep_last: int, limit: int = AT_ONCE
) -> tuple[RunId, ...]:
    """Up to `limit` runs that ended before that moment are gone, and so is what earlier callers left over."""
    await _sweep(store, delete)
    runs = await store.prune(before, limit, keep_last)
    await _sweep(store, delete)
    return runs


async def _sweep(store: AdminStore, delete: Delete) -> None:
    while left := await store.leftovers(AT_ONCE):
        for run in left:
            await delete(run_folder(run))
        # Only now: who dies before this leaves the folders to the next one.
        await store.swept(left)

"""The Postgres store: each verb of `ork.state.store.StateStore` calls the function of that name in this package."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Concatenate, ParamSpec, TypeVar

from ork.errors import StoreError
from ork.state.postgres import (
    access,
    commit,
    definitions,
    installation,
    locations,
    ownership,
    quarantine,
    reads,
    requests,
    schedules,
    set_aside_list,
)
from ork.state.postgres.address import read_address
from ork.state.postgres.database import Database, LeaseClock
from ork.state.postgres.failures import DRIVER_ERRORS, is_locked_out, is_lost, store_error
from ork.state.postgres.waiting import ChangeListener
from ork.state.verbs import DatabaseStore

LEASE_SECONDS = 60.0
# For a whole verb. Shorter than a lease, so that a scheduler notices an outage before its lease expires.
ANSWER_SECONDS = 45.0

_MODULES = (
    access, commit, definitions, installation, locations, ownership, quarantine, reads, requests, schedules,
    set_aside_list,
)  # fmt: skip

P = ParamSpec("P")
T = TypeVar("T")


class PostgresStore(DatabaseStore, modules=_MODULES):
    """One handle: a pool of connections, opened on first use. The schema is created or migrated then.

    If the connection is lost during a verb, or the verb takes too long, it raises StoreUnavailableError: its
    transaction may or may not have been committed. The handle stays usable. All calls must come from one event loop.
    """

    def __init__(
        self,
        url: str,
        *,
        lease_seconds: float = LEASE_SECONDS,
        pool_size: int | None = None,
        clock: LeaseClock | None = None,
    ) -> None:
        address = read_address(url, pool_size)
        self.name = address.shown
        self._db = Database(address, lease_seconds, clock)
        self._listener: ChangeListener | None = None
        self._is_closed = False

    # ── waking ───────────────────────────────────────────────────────────────────────────────────

    async def wait_for_change(self, timeout: float | None) -> bool:
        await self._open()
        if self._listener is None:
            self._listener = ChangeListener(self._db)
        return await self._listener.wait(timeout)

    async def close(self) -> None:
        """Close the handle. May be called twice."""
        self._is_closed = True
        if self._listener is not None:
            await self._listener.close()
        await self._db.close()

    async def _open(self) -> None:
        """Open the database. Connecting has its own time limit; migrating the schema has none."""
        if self._is_closed:
            raise StoreError(f"The store {self.name} has been closed.")
        try:
            await self._db.open()
        except (*DRIVER_ERRORS, ValueError) as error:
            raise store_error(error, self.name) from error

    async def _do(
        self,
        verb: Callable[Concatenate[Database, P], Awaitable[T]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        await self._open()
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await verb(self._db, *args, **kwargs)
        except DRIVER_ERRORS as error:
            await self._recover(error)
            raise store_error(error, self.name) from error

    async def _recover(self, error: BaseException) -> None:
        """Prepare for the next verb: replace lost connections, and terminate sessions that hold locks for too long."""
        if is_lost(error):
            await self._db.replace_connections()
        elif is_locked_out(error):
            with suppress(*DRIVER_ERRORS):
                await self._db.end_silent_sessions()

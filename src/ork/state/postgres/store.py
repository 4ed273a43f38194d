"""The Postgres store: the verbs of `ork.state.store.StateStore`, each one call of a function of that name in this folder."""

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
from ork.state.postgres.failures import TROUBLE, is_locked_out, is_lost, store_error
from ork.state.postgres.waiting import Listener
from ork.state.verbs import DatabaseStore

LEASE_SECONDS = 60.0
ANSWER_SECONDS = 45.0  # for a whole verb; less than a lease, so that its holder learns of trouble before others do

_MODULES = (
    access, commit, definitions, installation, locations, ownership, quarantine, reads, requests, schedules,
    set_aside_list,
)  # fmt: skip

P = ParamSpec("P")
T = TypeVar("T")


class PostgresStore(DatabaseStore, modules=_MODULES):
    """One handle: a pool of connections, opened when first used. The schema is created or brought up to date then.

    A verb whose connection is lost, or that is not answered in time, is StoreUnavailableError: what it wrote is there as
    a whole or not at all, and nobody can say which. The handle stays usable. All calls must come from one event loop.
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
        self._listener: Listener | None = None
        self._is_closed = False

    # ── waking ───────────────────────────────────────────────────────────────────────────────────

    async def wait_for_change(self, timeout: float | None) -> bool:
        await self._open()
        if self._listener is None:
            self._listener = Listener(self._db)
        return await self._listener.wait(timeout)

    async def close(self) -> None:
        """May be called twice."""
        self._is_closed = True
        if self._listener is not None:
            await self._listener.close()
        await self._db.close()

    async def _open(self) -> None:
        """Connecting has a time limit of its own; bringing a schema up to date takes as long as it takes."""
        if self._is_closed:
            raise StoreError(f"The store {self.name} has been closed.")
        try:
            await self._db.open()
        except (*TROUBLE, ValueError) as error:
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
        except TROUBLE as error:
            await self._recover(error)
            raise store_error(error, self.name) from error

    async def _recover(self, error: BaseException) -> None:
        """So that the next verb fares better."""
        if is_lost(error):
            await self._db.trust_no_connection()
        elif is_locked_out(error):
            with suppress(*TROUBLE):
                await self._db.end_silent_sessions()

"""The Firestore store: the verbs of `ork.state.store.StateStore`, each one call of a function of that name in this folder."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Concatenate, ParamSpec, TypeVar

from ork.errors import StoreError
from ork.state.firestore import (
    access,
    claims,
    commit,
    definitions,
    installation,
    locations,
    notices,
    ownership,
    pruning,
    quarantine,
    reads,
    requests,
)
from ork.state.firestore.address import Address, read_address
from ork.state.firestore.database import Database, LeaseClock
from ork.state.firestore.failures import TROUBLE, ConflictError, UnansweredError, store_error
from ork.state.firestore.schema import open_schema
from ork.state.firestore.waiting import ChangeListener
from ork.state.firestore.wire import Wire
from ork.state.verbs import DatabaseStore

LEASE_SECONDS = 60.0
ANSWER_SECONDS = 45.0  # for a whole verb; less than a lease, so that its holder learns of trouble before others do

_MODULES = (
    access, claims, commit, definitions, installation, locations, notices, ownership, pruning, quarantine, reads, requests,
)  # fmt: skip

P = ParamSpec("P")
T = TypeVar("T")


class FirestoreStore(DatabaseStore, modules=_MODULES):
    """One handle: a channel, opened when first used. All calls must come from one event loop.

    A verb that is not answered in time is StoreUnavailableError: what it wrote is there as a whole or not at all, and
    nobody can say which. The handle stays usable.
    """

    def __init__(
        self,
        url: str,
        *,
        lease_seconds: float = LEASE_SECONDS,
        clock: LeaseClock | None = None,
        emulator: str | None = None,
        connect: Callable[[Address], Wire] = Wire,
    ) -> None:
        address = read_address(url, emulator)
        self.name = address.shown
        self._db = Database(address, lease_seconds, clock, connect)
        self._listener: ChangeListener | None = None
        self._is_closed = False
        self._is_open = False

    async def wait_for_change(self, timeout: float | None) -> bool:
        await self._open()
        if self._listener is None:
            self._listener = ChangeListener(self._db)
        try:
            return await self._listener.wait(timeout)
        except TROUBLE as error:
            raise store_error(error, self.name) from error

    async def close(self) -> None:
        """May be called twice."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._listener is not None:
            await self._listener.close()
        await self._db.close()

    async def _open(self) -> None:
        if self._is_closed:
            raise StoreError(f"The store {self.name} has been closed.")
        if self._is_open:
            return
        try:
            async with self._db.wire.within(ANSWER_SECONDS):
                await open_schema(self._db.wire, self.name)
        except (ConflictError, UnansweredError, *TROUBLE) as error:
            raise store_error(error, self.name) from error
        self._is_open = True

    async def _do(
        self,
        verb: Callable[Concatenate[Database, P], Awaitable[T]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        await self._open()
        try:
            async with self._db.wire.within(ANSWER_SECONDS):
                return await verb(self._db, *args, **kwargs)
        except (ConflictError, UnansweredError, *TROUBLE) as error:
            self._db.forget()
            raise store_error(error, self.name) from error

"""The database that every verb works on: a pool of connections, the store's clock, and what a handle remembers between
calls."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from datetime import datetime
from typing import Any, TypeAlias

import asyncpg

from ork.errors import OrkError, UnreadableError
from ork.model.ids import RunId, VersionId
from ork.model.run import Run
from ork.model.workflow import Version
from ork.state.postgres.address import Address
from ork.state.postgres.connection import Hosts, Row, Session
from ork.state.postgres.failures import DRIVER_ERRORS
from ork.state.postgres.rows import lenient
from ork.state.postgres.schema import bring_up_to_date
from ork.state.quarantine import missing_version
from ork.state.versions import KnownVersions

LeaseClock: TypeAlias = Callable[[], datetime]

_CLOSE_SECONDS = 5.0
SILENT_SECONDS = 15.0  # as long as a transaction may stay open between two requests
_SLOTS = 16  # rows of the table `pulse`
_RUNS_KEPT = 10_000


class Database:
    """The database of one handle. `clock` is for tests; by default leases and rates use the clock of the database."""

    def __init__(self, address: Address, lease_seconds: float, clock: LeaseClock | None) -> None:
        self.address = address
        self.hosts = Hosts(address)
        self.lease_seconds = lease_seconds
        self.statements = 0
        self.handle = os.urandom(8).hex()
        self.slot = os.urandom(1)[0] % _SLOTS
        self.own_changes = 0
        self._clock = clock
        self._pool: asyncpg.Pool | None = None
        self._opening = asyncio.Lock()
        self.versions = KnownVersions()
        self._versions_of_runs: dict[RunId, VersionId] = {}

    def moment(self) -> datetime | None:
        """The time for statements that check leases; None means the database's clock."""
        return None if self._clock is None else self._clock()

    @property
    def sender(self) -> tuple[int, str]:
        """The arguments of the SQL function `ork.tell_others`."""
        return self.slot, self.handle

    @property
    def silent_seconds(self) -> float:
        """After this time, a session that is silent within a request is terminated by those that wait for its locks."""
        return SILENT_SECONDS

    # ── connections ──────────────────────────────────────────────────────────────────────────────

    async def open(self) -> asyncpg.Pool:
        """The pool. The first call connects and migrates the schema."""
        if self._pool is None:
            async with self._opening:
                if self._pool is None:
                    self._pool = await self._open_pool()
        return self._pool

    async def _open_pool(self) -> asyncpg.Pool:
        pool = await self.hosts.open_pool("store")
        try:
            async with pool.acquire() as connection:
                await bring_up_to_date(connection, self.address.shown)
        except BaseException:
            pool.terminate()
            raise
        return pool

    def writing(self) -> AbstractAsyncContextManager[Session]:
        """A write transaction. Each statement sees what was committed before it began."""
        return self._transaction("begin_writing")

    def reading(self) -> AbstractAsyncContextManager[Session]:
        """A read transaction: all reads in it see the same snapshot."""
        return self._transaction("begin_reading")

    @asynccontextmanager
    async def _transaction(self, begin: str) -> AsyncIterator[Session]:
        async with self._connection() as connection:
            session = Session(self, connection)
            try:
                await session.begin(begin)
                yield session
                await session.run("commit")
            except BaseException as error:
                with suppress(*DRIVER_ERRORS):
                    if _is_harmless(error) and not connection.is_closed():
                        await session.run("roll_back")
                raise
            self.own_changes += session.notifies

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[asyncpg.Connection]:
        """A connection of the pool. It is terminated if a request may still be active afterwards, so that no one waits
        for a server that does not respond.

        A lost connection has already left the pool and raises InterfaceError, which must not hide the original error.
        """
        pool = await self.open()
        connection = await pool.acquire()
        try:
            yield connection
        except BaseException as error:
            with suppress(asyncpg.InterfaceError):
                if not _is_harmless(error) or connection.is_in_transaction():
                    connection.terminate()
            raise
        finally:
            await pool.release(connection)

    async def rows(self, name: str, *values: Any) -> list[Row]:
        """Run one statement as its own transaction, in one request. It is durable when this returns."""
        if self.address.behind_pooler:
            async with self.writing() as session:
                return await session.rows(name, *values)
        async with self._connection() as connection:
            return await Session(self, connection).rows(name, *values)

    async def row(self, name: str, *values: Any) -> Row | None:
        found = await self.rows(name, *values)
        return found[0] if found else None

    async def run(self, name: str, *values: Any) -> int:
        """Like `rows`, but returns the number of rows written."""
        if self.address.behind_pooler:
            async with self.writing() as session:
                return await session.run(name, *values)
        async with self._connection() as connection:
            return await Session(self, connection).run(name, *values)

    async def replace_connections(self) -> None:
        """Replace all connections of the pool: after one was lost without an error from the server, the others are
        probably lost too, and the next callers must not wait for each of them."""
        if self._pool is not None:
            await self._pool.expire_connections()

    async def end_silent_sessions(self) -> None:
        """Terminate sessions that are silent within a request and hold locks, so that others wait no longer than the
        time limit."""
        await self.rows("end_silent_sessions", self.silent_seconds)

    async def close(self) -> None:
        pool, self._pool = self._pool, None
        if pool is None:
            return
        try:
            async with asyncio.timeout(_CLOSE_SECONDS):
                await pool.close()
        except DRIVER_ERRORS:
            pool.terminate()

    # ── what many verbs need ─────────────────────────────────────────────────────────────────────

    async def version(self, session: Asked, id: VersionId) -> Version | None:
        """The version, read and decoded once because versions never change. UnreadableError if its document is
        damaged."""
        known = self.versions.get(id)
        if known is None:
            row = await session.row("get_version", id)
            if row is None:
                return None
            known = self.versions.decoded(id, *row)
        return known

    async def needed_version(self, session: Asked, id: VersionId) -> Version:
        version = await self.version(session, id)
        if version is None:
            raise UnreadableError(missing_version(id))
        return version

    async def order(self, session: Asked, id: VersionId) -> dict[str, int]:
        """The position of each task in the workflow."""
        order = self.versions.known_order(id)
        return self.versions.order_of(await self.needed_version(session, id)) if order is None else order

    async def orders_of_runs(self, runs: Sequence[RunId]) -> dict[RunId, dict[str, int]]:
        """The task order of each run that exists and whose version can be read."""
        unknown = [run for run in runs if run not in self._versions_of_runs]
        for run, version in await self.rows("versions_of_runs", unknown) if unknown else ():
            self.note_run(run, version)
        known = {run: self._versions_of_runs[run] for run in runs if run in self._versions_of_runs}
        orders: dict[RunId, dict[str, int]] = {}
        for run, version in known.items():
            with suppress(UnreadableError):  # fenced: the next claim quarantines it
                orders[run] = await self.order(self, version)
        return orders

    def note_run(self, run: RunId, version: VersionId) -> None:
        """Remember the version of a run, which never changes."""
        if len(self._versions_of_runs) >= _RUNS_KEPT:
            del self._versions_of_runs[next(iter(self._versions_of_runs))]
        self._versions_of_runs[run] = version


Asked: TypeAlias = Database | Session


async def runs_by_id(session: Asked, ids: Sequence[str]) -> list[tuple[Run, Row]]:
    """The existing runs in the order of `ids`, each with its row. Includes damaged runs, for readers."""
    return [(lenient.run(row), row) for row in await session.rows("runs_by_id", ids)]


async def run_by_id(session: Asked, id: RunId) -> Run | None:
    found = await runs_by_id(session, [id])
    return found[0][0] if found else None


def _is_harmless(error: BaseException) -> bool:
    """True if the server has responded, or no request was sent."""
    return isinstance(error, OrkError | asyncpg.PostgresError)

"""What every verb works on: a pool of connections, the store's clock, and what a handle remembers between calls."""

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
from ork.state.postgres.failures import TROUBLE
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
    """`clock` is for tests: without one, leases and rates go by the clock of the database."""

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
        """What statements that judge leases are given: None lets them ask the database's clock."""
        return None if self._clock is None else self._clock()

    @property
    def voice(self) -> tuple[int, str]:
        """What `ork.tell_others` is given."""
        return self.slot, self.handle

    @property
    def silent_seconds(self) -> float:
        """After which a session that is silent in the middle of a request is ended by those whom it holds up."""
        return SILENT_SECONDS

    # ── connections ──────────────────────────────────────────────────────────────────────────────

    async def open(self) -> asyncpg.Pool:
        """Connects when first needed, and brings the schema up to date."""
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
        """All or nothing. Each statement sees what was committed before it began."""
        return self._transaction("begin_writing")

    def reading(self) -> AbstractAsyncContextManager[Session]:
        """All reads inside see the same moment."""
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
                with suppress(*TROUBLE):
                    if _is_harmless(error) and not connection.is_closed():
                        await session.run("roll_back")
                raise
            self.own_changes += session.tells

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[asyncpg.Connection]:
        """One that may be in the middle of something when we are done is cut off: nobody waits for a server that is silent.

        One that was lost is the pool's again already and answers nothing: that must not hide the error it was lost with.
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
        """One statement that is a transaction of its own: one request, and it is durable when the answer is here."""
        if self.address.behind_pooler:
            async with self.writing() as session:
                return await session.rows(name, *values)
        async with self._connection() as connection:
            return await Session(self, connection).rows(name, *values)

    async def row(self, name: str, *values: Any) -> Row | None:
        found = await self.rows(name, *values)
        return found[0] if found else None

    async def run(self, name: str, *values: Any) -> int:
        """As `rows`; the number of rows it wrote is the answer."""
        if self.address.behind_pooler:
            async with self.writing() as session:
                return await session.run(name, *values)
        async with self._connection() as connection:
            return await Session(self, connection).run(name, *values)

    async def trust_no_connection(self) -> None:
        """Where one was lost in silence the others are as silent: whoever comes next must not wait for each of them."""
        if self._pool is not None:
            await self._pool.expire_connections()

    async def end_silent_sessions(self) -> None:
        """Nobody who is frozen in the middle of a request holds the others up for longer than anybody else may."""
        await self.rows("end_silent_sessions", self.silent_seconds)

    async def close(self) -> None:
        pool, self._pool = self._pool, None
        if pool is None:
            return
        try:
            async with asyncio.timeout(_CLOSE_SECONDS):
                await pool.close()
        except TROUBLE:
            pool.terminate()

    # ── what many verbs need ─────────────────────────────────────────────────────────────────────

    async def version(self, session: Asked, id: VersionId) -> Version | None:
        """Versions never change, so each is read and decoded once. UnreadableError if its document is damaged."""
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
        """Each task's place in the workflow."""
        order = self.versions.known_order(id)
        return self.versions.order_of(await self.needed_version(session, id)) if order is None else order

    async def orders_of_runs(self, runs: Sequence[RunId]) -> dict[RunId, dict[str, int]]:
        """Of those that exist and whose version can be read."""
        unknown = [run for run in runs if run not in self._versions_of_runs]
        for run, version in await self.rows("versions_of_runs", unknown) if unknown else ():
            self.note_run(run, version)
        known = {run: self._versions_of_runs[run] for run in runs if run in self._versions_of_runs}
        orders: dict[RunId, dict[str, int]] = {}
        for run, version in known.items():
            with suppress(UnreadableError):  # fenced: whoever claims it anew sets it aside
                orders[run] = await self.order(self, version)
        return orders

    def note_run(self, run: RunId, version: VersionId) -> None:
        """A run keeps its version for ever."""
        if len(self._versions_of_runs) >= _RUNS_KEPT:
            del self._versions_of_runs[next(iter(self._versions_of_runs))]
        self._versions_of_runs[run] = version


Asked: TypeAlias = Database | Session


async def runs_by_id(session: Asked, ids: Sequence[str]) -> list[tuple[Run, Row]]:
    """Those that exist, in the order asked for, each with its whole row. For readers: damaged ones are among them."""
    return [(lenient.run(row), row) for row in await session.rows("runs_by_id", ids)]


async def run_by_id(session: Asked, id: RunId) -> Run | None:
    found = await runs_by_id(session, [id])
    return found[0][0] if found else None


def _is_harmless(error: BaseException) -> bool:
    """The server has answered, or was not asked."""
    return isinstance(error, OrkError | asyncpg.PostgresError)

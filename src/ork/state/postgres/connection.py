"""Connections that cannot hang for ever, and transactions on them."""

from __future__ import annotations

import socket
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeAlias

import asyncpg

from ork.state.postgres.address import Address
from ork.state.postgres.failures import DRIVER_ERRORS
from ork.state.postgres.sql import sql

if TYPE_CHECKING:
    from asyncio import BaseTransport

    from ork.state.postgres.database import Database

Row: TypeAlias = "asyncpg.Record"

CONNECT_SECONDS = 10.0
HOST_SECONDS = 4.0  # for each of several hosts: one that does not respond must not use up the time for the others
# Both sides detect a dead peer after 20 seconds, whether data is in flight or not.
_SILENCE_SECONDS = 20
_KEEPALIVE = {"idle": 10, "interval": 3, "count": 3}

_TRY_NEXT_HOST = (OSError, TimeoutError, asyncpg.CannotConnectNowError, asyncpg.TargetServerAttributeNotMatched)

# Maximum time for which a statement runs, waits for a lock, or leaves its transaction open: a client that is suspended
# or disconnected in between must not block others for as long as a lease lasts.
TIME_LIMITS = {
    "statement_timeout": "30s",
    "lock_timeout": "20s",
    "idle_in_transaction_session_timeout": "15s",
}
_SESSION = {
    **TIME_LIMITS,
    "jit": "off",  # compiling costs more than any of our statements
    # For statements outside a transaction block: each statement inside a function sees what was committed before it.
    "default_transaction_isolation": "read committed",
    "tcp_keepalives_idle": str(_KEEPALIVE["idle"]),
    "tcp_keepalives_interval": str(_KEEPALIVE["interval"]),
    "tcp_keepalives_count": str(_KEEPALIVE["count"]),
    "tcp_user_timeout": str(_SILENCE_SECONDS * 1000),
}


class WatchedConnection(asyncpg.Connection):  # type: ignore[misc]
    """A connection with a socket that detects a dead peer, and without a reset query: Ork leaves no session state
    behind."""

    def __init__(self, protocol: Any, transport: BaseTransport, *rest: Any) -> None:
        super().__init__(protocol, transport, *rest)
        _watch(transport.get_extra_info("socket"))

    async def close(self, *, timeout: float | None = None) -> None:
        """Close the connection; errors are ignored, because the pool no longer uses it."""
        with suppress(*DRIVER_ERRORS):
            await super().close(timeout=timeout)

    def get_reset_query(self) -> str:
        return ""


class Hosts:
    """Connects to the first host that accepts and matches `target_session_attrs`. The last successful host is tried
    first, so that after a failover connections do not wait for the dead host again."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._dsns = list(address.dsns)

    async def open_pool(self, purpose: str) -> asyncpg.Pool:
        options = connect_options(self.address, purpose)
        return await asyncpg.create_pool(min_size=0, max_size=self.address.pool_size, connect=self._connect, **options)

    async def connect(self, purpose: str) -> asyncpg.Connection:
        return await self._connect(**connect_options(self.address, purpose))

    async def _connect(self, _dsn: str | None = None, **options: Any) -> asyncpg.Connection:
        """Connect to a host of the address. Called by the pool, which has no DSN."""
        failures: list[Exception] = []
        for dsn in tuple(self._dsns):
            try:
                connection = await asyncpg.connect(dsn, **options)
            except _TRY_NEXT_HOST as failure:
                failures.append(failure)
            else:
                self._dsns.sort(key=lambda each: each != dsn)
                return connection
        raise failures[-1]


def connect_options(address: Address, purpose: str) -> dict[str, Any]:
    """Options of a connection. A pooler accepts no session settings except the name."""
    name = {"application_name": f"ork {purpose}"}
    return {
        "timeout": CONNECT_SECONDS if len(address.dsns) == 1 else HOST_SECONDS,
        "statement_cache_size": address.statement_cache_size,
        "server_settings": name if address.behind_pooler else {**_SESSION, **name},
        "connection_class": WatchedConnection,
    }


def _time_or_text(text: str) -> datetime | str:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return text


class Session:
    """One transaction. Counts its statements; others are notified when it is durable."""

    def __init__(self, database: Database, connection: asyncpg.Connection) -> None:
        self._database = database
        self._connection = connection
        self.notifies = False

    async def run(self, name: str, *values: Any) -> int:
        """Run the named statement and return the number of rows written."""
        self._database.statements += 1
        answer = await self._connection.execute(sql(name), *values)
        number = answer.rpartition(" ")[2]
        return int(number) if number.isdecimal() else 0

    async def write(self, name: str, rows: list[tuple[Any, ...]]) -> None:
        """Write all rows in one statement that takes each column as an array. A column without values is sent as NULL,
        which `unnest` expands."""
        if rows:
            columns = zip(*rows, strict=True)
            await self.run(name, *(None if column.count(None) == len(rows) else column for column in columns))

    async def rows(self, name: str, *values: Any) -> list[Row]:
        self._database.statements += 1
        try:
            found: list[Row] = await self._connection.fetch(sql(name), *values)
        except OverflowError:
            return await self._damaged_rows(name, *values)
        return found

    async def _damaged_rows(self, name: str, *values: Any) -> list[Row]:
        """Read again with times outside Python's range as text, so that one of them does not hide the other rows. Not
        needed for statements that write: they select times by `ork.readable`."""
        times = {"schema": "pg_catalog", "format": "text", "encoder": str, "decoder": _time_or_text}
        await self._connection.set_type_codec("timestamptz", **times)
        try:
            found: list[Row] = await self._connection.fetch(sql(name), *values)
            return found
        finally:
            await self._connection.reset_type_codec("timestamptz", schema="pg_catalog")

    async def row(self, name: str, *values: Any) -> Row | None:
        found = await self.rows(name, *values)
        return found[0] if found else None

    async def begin(self, name: str) -> None:
        await self.run(name)
        if self._database.address.behind_pooler:
            await self.rows("limit_time", *TIME_LIMITS.values())

    async def next_change(self) -> int:
        """The number under which this transaction writes. Get it after all rows to be written are locked, so that the
        numbers of a run grow in the order of its commits."""
        return int((await self.rows("next_change"))[0][0])

    async def notify_others(self) -> None:
        """Notify other handles when the transaction commits. Call it last: transactions that notify wait for each other
        from here to their end."""
        await self.rows("tell_others", self._database.slot, self._database.handle)
        self.notifies = True


def _watch(peer: socket.socket | None) -> None:
    if peer is None or peer.family not in (socket.AF_INET, socket.AF_INET6):
        return
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (
        ("TCP_KEEPIDLE", _KEEPALIVE["idle"]),
        ("TCP_KEEPINTVL", _KEEPALIVE["interval"]),
        ("TCP_KEEPCNT", _KEEPALIVE["count"]),
        ("TCP_USER_TIMEOUT", _SILENCE_SECONDS * 1000),
    ):
        if hasattr(socket, option):
            peer.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)

"""Connections: how they are opened so that none can hang for ever, and one transaction on one of them."""

from __future__ import annotations

import socket
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeAlias

import asyncpg

from ork.state.postgres.address import Address
from ork.state.postgres.failures import TROUBLE
from ork.state.postgres.sql import sql

if TYPE_CHECKING:
    from asyncio import BaseTransport

    from ork.state.postgres.database import Database

Row: TypeAlias = "asyncpg.Record"

CONNECT_SECONDS = 10.0
HOST_SECONDS = 4.0  # for each of several: one that is silent must not use up the time of those that would answer
# A peer that is silently gone is noticed after 20 seconds by either side, whether data is under way or not.
_SILENCE_SECONDS = 20
_KEEPALIVE = {"idle": 10, "interval": 3, "count": 3}

_TRY_NEXT_HOST = (OSError, TimeoutError, asyncpg.CannotConnectNowError, asyncpg.TargetServerAttributeNotMatched)

# No statement runs, waits for a lock, or leaves its transaction open for longer than this: whoever is frozen or cut off
# in the middle of one holds nobody up for the length of a lease.
TIME_LIMITS = {
    "statement_timeout": "30s",
    "lock_timeout": "20s",
    "idle_in_transaction_session_timeout": "15s",
}
_SESSION = {
    **TIME_LIMITS,
    "jit": "off",  # compiling costs more than any of our statements
    # Of a statement that is a transaction of its own: each statement inside a function sees what was committed before it.
    "default_transaction_isolation": "read committed",
    "tcp_keepalives_idle": str(_KEEPALIVE["idle"]),
    "tcp_keepalives_interval": str(_KEEPALIVE["interval"]),
    "tcp_keepalives_count": str(_KEEPALIVE["count"]),
    "tcp_user_timeout": str(_SILENCE_SECONDS * 1000),
}


class WatchedConnection(asyncpg.Connection):  # type: ignore[misc]
    """Its socket gives up on a peer that is silent, and nothing is reset between two users: we leave nothing behind."""

    def __init__(self, protocol: Any, transport: BaseTransport, *rest: Any) -> None:
        super().__init__(protocol, transport, *rest)
        _watch(transport.get_extra_info("socket"))

    async def close(self, *, timeout: float | None = None) -> None:
        """Nobody waits for the goodbye of one that the pool no longer trusts: how it ends is no concern."""
        with suppress(*TROUBLE):
            await super().close(timeout=timeout)

    def get_reset_query(self) -> str:
        return ""


class Hosts:
    """The database, on whichever of its hosts lets us in and is what `target_session_attrs` asks for. The one that did
    so last is tried first: after a failover nobody waits again and again for a host that is gone."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._dsns = list(address.dsns)

    async def open_pool(self, purpose: str) -> asyncpg.Pool:
        options = connect_options(self.address, purpose)
        return await asyncpg.create_pool(min_size=0, max_size=self.address.pool_size, connect=self._connect, **options)

    async def connect(self, purpose: str) -> asyncpg.Connection:
        return await self._connect(**connect_options(self.address, purpose))

    async def _connect(self, _dsn: str | None = None, **options: Any) -> asyncpg.Connection:
        """The pool names no host; we do."""
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
    """A pooler knows none of the settings of a session but its name."""
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
    """One transaction. Counts its statements; what it tells others they hear once it is durable."""

    def __init__(self, database: Database, connection: asyncpg.Connection) -> None:
        self._database = database
        self._connection = connection
        self.tells = False

    async def run(self, name: str, *values: Any) -> int:
        """Runs the named statement; the number of rows it wrote is the answer."""
        self._database.statements += 1
        answer = await self._connection.execute(sql(name), *values)
        number = answer.rpartition(" ")[2]
        return int(number) if number.isdecimal() else 0

    async def write(self, name: str, rows: list[tuple[Any, ...]]) -> None:
        """All rows at once: the statement takes each column as an array. One in which nothing stands is not sent at all:
        `unnest` fills it up."""
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
        """Reads once more, with times that Python does not have as text: one of them must not hide the other rows.
        Statements that write do not come here: they ask for `ork.readable` times."""
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
        """The number under which this transaction writes. Ask for it when every row to be written is locked: so the
        numbers of one run grow in the order of its commits."""
        return int((await self.rows("next_change"))[0][0])

    async def tell_others(self) -> None:
        """The last statement before the end: it makes transactions that tell wait for each other."""
        await self.rows("tell_others", self._database.slot, self._database.handle)
        self.tells = True


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

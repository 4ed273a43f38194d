"""A database with several hosts: whoever is gone or only reads is passed over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from ork.errors import StoreUnavailableError
from tests.postgres import Server

pytest.importorskip("asyncpg", reason="asyncpg is not installed: nothing is tried on Postgres")

from ork.state.postgres import PostgresStore, connection, db_status

CLOSED_PORT = 1


def url_of(database: str, *ports: int) -> str:
    hosts = ",".join(f"127.0.0.1:{port}" for port in ports)
    return f"postgresql://ork@{hosts}/{database}?target_session_attrs=read-write"


@asynccontextmanager
async def silent_host() -> AsyncIterator[tuple[int, list[int]]]:
    """Its port, and a list that grows with every caller; none is ever answered."""
    callers: list[int] = []

    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        callers.append(1)
        await reader.read(-1)
        writer.close()

    host = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
    async with host:
        yield host.sockets[0].getsockname()[1], callers


def test_a_silent_host_costs_its_time_once_and_nobody_elses(
    server: Server, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "HOST_SECONDS", 0.5)

    async def scene() -> int:
        async with silent_host() as (port, callers):
            store = PostgresStore(url_of(database, port, server.port))
            await store.signing_key()
            await asyncio.gather(*(store.list_workflows() for _ in range(5)))
            await store.wait_for_change(0)
            await store.close()
            return len(callers)

    assert asyncio.run(scene()) == 1


def test_a_host_that_refuses_is_passed_over_by_every_way_in(server: Server, database: str) -> None:
    url = url_of(database, CLOSED_PORT, server.port)
    assert asyncio.run(db_status(url)).current > 0

    async def scene() -> None:
        store = PostgresStore(url)
        assert await store.list_workflows() == ()
        await store.close()

    asyncio.run(scene())


def test_where_no_host_takes_writes_the_error_says_so(server: Server, database: str) -> None:
    server.sql(f"ALTER DATABASE {database} SET default_transaction_read_only = on")
    with pytest.raises(StoreUnavailableError, match="None of the hosts match"):
        asyncio.run(PostgresStore(url_of(database, CLOSED_PORT, server.port)).list_workflows())

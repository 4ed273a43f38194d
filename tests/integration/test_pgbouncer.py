"""A real PgBouncer between us and the database, in transaction mode. The conformance suite passes through one as well."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from ork.errors import StoreError, StoreUnavailableError
from tests.conformance.state_samples import start_runs
from tests.pgbouncer import Bouncer, bouncer_or_skip
from tests.postgres import Server, server_or_skip

pytest.importorskip("asyncpg", reason="asyncpg is not installed: nothing is tried on Postgres")

from ork.state.postgres import PostgresStore, migrate, waiting


@pytest.fixture
def bouncer(server: Server) -> Iterator[Bouncer]:
    bouncer = bouncer_or_skip(server)
    yield bouncer
    bouncer.remove()


def test_a_url_that_does_not_speak_of_the_pooler_is_refused_with_what_to_write(bouncer: Bouncer, database: str) -> None:
    with pytest.raises(StoreError, match="unsupported startup parameter") as caught:
        asyncio.run(PostgresStore(bouncer.url(database)).list_workflows())
    assert not isinstance(caught.value, StoreUnavailableError)
    assert "pooler=transaction" in str(caught.value.hint)


def test_a_database_that_restarts_behind_it_is_gone_for_now_and_the_handle_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The pooler itself keeps its clients waiting while there is no database, for longer than we wait for an answer."""
    monkeypatch.setattr("ork.state.postgres.store.ANSWER_SECONDS", 1.0)
    own = Server(server_or_skip().bin)
    bouncer = bouncer_or_skip(own)

    async def scene() -> None:
        store = PostgresStore(f"{bouncer.url(own.new_database())}?pooler=transaction")
        await store.list_workflows()
        own.stop()
        with pytest.raises(StoreUnavailableError):
            await store.list_workflows()
        own.start()
        while True:  # the pooler waits a while before it tries again
            try:
                assert await store.list_workflows() == ()
                break
            except StoreUnavailableError:
                await asyncio.sleep(0.1)
        await store.close()

    try:
        asyncio.run(scene())
    finally:
        bouncer.remove()
        own.remove()


def test_who_waits_behind_it_finds_the_news_by_looking(
    bouncer: Bouncer, server: Server, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody can listen through it: a notification reaches whoever has the connection just then."""
    monkeypatch.setattr(waiting, "POOLER_LOOK_SECONDS", 0.2)
    server.log_statements(database)

    async def scene() -> None:
        here, there = PostgresStore(f"{bouncer.url(database)}?pooler=transaction"), PostgresStore(server.url(database))
        await here.wait_for_change(0)
        asleep = asyncio.ensure_future(here.wait_for_change(None))
        await start_runs(there)
        assert await asyncio.wait_for(asleep, 30)
        for store in (here, there):
            await store.close()

    asyncio.run(scene())
    assert not any("LISTEN" in line for line in server.statements(database))


def test_limits_of_time_hold_though_a_session_is_nobodys_own(bouncer: Bouncer, database: str) -> None:
    async def scene() -> list[str]:
        store = PostgresStore(f"{bouncer.url(database)}?pooler=transaction")
        async with store._db.writing() as session:
            shown = [
                await session._connection.fetchval(f"SHOW {name}") for name in ("statement_timeout", "lock_timeout")
            ]
        async with store._db.reading() as session:
            shown.append(await session._connection.fetchval("SHOW idle_in_transaction_session_timeout"))
        await store.close()
        return shown

    assert asyncio.run(scene()) == ["30s", "20s", "15s"]


def test_several_processes_may_bring_a_schema_up_to_date_through_it_at_once(bouncer: Bouncer, server: Server) -> None:
    empty = server.new_database()
    url = f"{bouncer.url(empty)}?pooler=transaction"

    async def scene() -> None:
        found = await asyncio.gather(*(migrate(url) for _ in range(8)))
        assert len(set(found)) == 1

    asyncio.run(scene())
    server.drop_database(empty)

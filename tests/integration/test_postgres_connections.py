"""Connections that are lost, at every statement of every verb: an error, all or nothing, and the handle goes on."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from ork.errors import StoreError, StoreUnavailableError
from ork.model.ids import RunId
from ork.state.store import StateStore
from tests.conformance.state_samples import NOW, command, deploy, later, new_run, start_runs
from tests.integration.conftest import with_stores
from tests.integration.cutting_proxy import CuttingProxy, Where
from tests.integration.store_verbs import ASK_NO_STATEMENT, READS, WRITES, Given, Verb, prepare
from tests.postgres import Server, server_or_skip

pytest.importorskip("asyncpg", reason="asyncpg is not installed: nothing is tried on Postgres")

from ork.state.postgres import PostgresStore
from ork.state.postgres.connection import connect_options

REQUESTS_AT_MOST = 60

at_both_ends = pytest.mark.parametrize("where", ["before", "after"])


def test_every_verb_of_a_store_is_tried_here() -> None:
    verbs = {name for name, _ in inspect.getmembers(StateStore, inspect.iscoroutinefunction)}
    assert set(WRITES) | set(READS) | ASK_NO_STATEMENT == verbs


class Line:
    """A store whose connections can be cut, with something of everything in it."""

    def __init__(self, store: PostgresStore, proxy: CuttingProxy, given: Given, server: Server, database: str) -> None:
        self.store = store
        self.given = given
        self.proxy = proxy
        self._server = server
        self._database = database

    async def is_cut_at(self, verb: Verb, request: int, where: Where) -> bool:
        """Whether the verb came so far as to ask that often. It fails if it was cut off, and only then."""
        await self.store.count_unfinished()  # there is a connection: making one is not counted
        self.proxy.arm(lambda _, number: number == request, where)
        try:
            await verb(self.store, self.given)
        except StoreUnavailableError:
            assert self.proxy.has_cut
            return True
        assert not self.proxy.has_cut
        return False

    def rows(self) -> set[str]:
        """Every version of every row: what was written, and by which transaction."""
        tables = self._server.sql("SELECT tablename FROM pg_tables WHERE schemaname = 'ork'", self._database)
        each = [f"SELECT '{table}', ctid, xmin FROM ork.{table}" for table in tables.split()]
        return set(self._server.sql(" UNION ALL ".join(each), self._database).splitlines())


@asynccontextmanager
async def line(server: Server, url: str) -> AsyncIterator[Line]:
    database = url.rsplit("/", 1)[1]
    direct = PostgresStore(url)
    given = await prepare(direct)
    await direct.close()
    async with CuttingProxy(server.port) as proxy:
        store = PostgresStore(server.url(database, port=proxy.port))
        await store.get_version(given.owned.version.id)  # remembered, so that each time asks the same number of things
        yield Line(store, proxy, given, server, database)
        await store.close()


@pytest.mark.slow
@at_both_ends
@pytest.mark.parametrize("verb", list(WRITES))
def test_a_write_that_is_cut_off_anywhere_is_an_error_and_written_as_a_whole_or_not_at_all(
    server: Server, url: str, verb: str, where: Where
) -> None:
    """Only if the answer to the commit itself is lost has it been written though the caller was told of a failure."""

    async def scene() -> tuple[int, bool]:
        async with line(server, url) as to:
            before = to.rows()
            for request in range(1, REQUESTS_AT_MOST):
                is_cut = await to.is_cut_at(WRITES[verb], request, where)
                after = to.rows()
                assert len({row.rpartition("|")[2] for row in after - before}) <= 1, "it was more than one transaction"
                if after != before:
                    return request, is_cut
                assert is_cut, "it wrote nothing"
        raise AssertionError("it never came to an end")

    requests, was_cut = asyncio.run(scene())
    assert requests >= 2  # it is prepared, and done
    assert was_cut == (where == "after")


@pytest.mark.slow
@at_both_ends
@pytest.mark.parametrize("verb", list(READS))
def test_a_read_that_is_cut_off_anywhere_is_an_error_and_can_be_asked_again(
    server: Server, url: str, verb: str, where: Where
) -> None:
    async def scene() -> int:
        async with line(server, url) as to:
            request = 1
            while await to.is_cut_at(READS[verb], request, where):
                request += 1
                assert request < REQUESTS_AT_MOST
            return request

    assert asyncio.run(scene()) >= 2


def test_an_ambiguous_commit_is_an_error_and_repeating_it_gives_what_is_there(server: Server, url: str) -> None:
    async def scene() -> None:
        async with line(server, url) as to:
            new = to.given.new
            to.proxy.arm(lambda data, _: new[0].id.encode() in data, "after")  # one request writes all of it
            with pytest.raises(StoreUnavailableError, match="connection was closed"):
                await to.store.create_runs(new, NOW)
            created = await to.store.create_runs(new, later(9))
            assert [run.created_at for run in created] == [NOW, NOW]

    asyncio.run(scene())


def test_after_one_connection_fell_silent_nobody_waits_for_the_others_of_the_pool(
    server: Server, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ork.state.postgres.store.ANSWER_SECONDS", 1.0)

    async def scene() -> None:
        async with line(server, url) as to:
            await asyncio.gather(*(to.store.list_workflows() for _ in range(5)))
            to.proxy.mute()
            with pytest.raises(StoreUnavailableError, match="did not answer in time"):
                await to.store.list_workflows()
            assert await to.store.list_workflows()

    asyncio.run(scene())


@pytest.mark.slow
def test_a_server_that_restarts_at_once_in_the_middle_of_work_loses_nothing_that_was_acknowledged() -> None:
    found = server_or_skip()
    server = Server(found.bin, ("-cfsync=on",))
    database = server.new_database()
    acknowledged: list[RunId] = []
    failures = 0

    async def scene() -> None:
        nonlocal failures
        store = PostgresStore(server.url(database))
        flow = await deploy(store)
        stopping = asyncio.Event()

        async def create() -> None:
            nonlocal failures
            while not stopping.is_set():
                new = new_run(flow)
                try:
                    await store.create_runs([new], NOW)
                    acknowledged.append(new.id)
                except StoreUnavailableError:
                    failures += 1
                    await asyncio.sleep(0.02)

        working = [asyncio.ensure_future(create()) for _ in range(4)]
        for _ in range(3):
            before = len(acknowledged)
            while len(acknowledged) < before + 50:
                await asyncio.sleep(0.01)
            await asyncio.to_thread(server.restart_at_once)
        stopping.set()
        await asyncio.gather(*working)
        for id in acknowledged:
            assert await store.get_run(id) is not None
        await store.close()

    try:
        asyncio.run(scene())
    finally:
        server.remove()
    assert failures > 0


def test_a_server_that_does_not_answer_is_an_error_and_not_a_hang(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    """The server takes the request and is silent: here because somebody else holds the row."""
    monkeypatch.setattr("ork.state.postgres.store.ANSWER_SECONDS", 0.3)

    async def scene(store: PostgresStore, other: PostgresStore) -> None:
        (run,) = await start_runs(store)
        async with other._db.writing() as session:
            await session.rows("lock_run", run.id)
            with pytest.raises(StoreUnavailableError, match="did not answer in time"):
                await store.submit_command(command(run.id), NOW)
        assert await store.submit_command(command(run.id), NOW)

    with_stores(url, 2, scene)


def test_a_caller_that_is_cancelled_in_the_middle_leaves_no_lock_behind(url: str) -> None:
    async def scene(store: PostgresStore, other: PostgresStore) -> None:
        (run,) = await start_runs(store)
        async with other._db.writing() as session:
            await session.rows("lock_run", run.id)
            asking = asyncio.ensure_future(store.submit_command(command(run.id), NOW))
            await asyncio.sleep(0.1)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
        assert await other.submit_command(command(run.id), NOW)

    with_stores(url, 2, scene)


def test_every_connection_gives_up_on_a_peer_that_is_silent(server: Server, url: str) -> None:
    import socket

    async def scene(store: PostgresStore) -> None:
        async with store._db.writing() as session:
            peer = session._connection._con._transport.get_extra_info("socket")
            assert peer.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            assert 0 < peer.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) <= 30_000
            for name in connect_options(store._db.address, "x")["server_settings"]:
                value = await session._connection.fetchval(f"SHOW {name}")
                assert value not in ("0", ""), name

    with_stores(url, 1, scene)


def test_wrong_passwords_and_missing_databases_are_errors_for_good(server: Server) -> None:
    with pytest.raises(StoreError, match="does not exist") as caught:
        asyncio.run(PostgresStore(server.url("nowhere")).signing_key())
    assert not isinstance(caught.value, StoreUnavailableError)

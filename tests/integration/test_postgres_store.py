"""What only a database on a network can do wrong: claimers in a crowd, crossed batches, lost connections, lost answers."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from ork.errors import StoreError, StoreUnavailableError
from ork.model.ids import RunId, SchedulerId
from ork.model.record import replaced
from ork.model.run import CommandKind, RunStatus
from ork.model.task import AttemptStatus, TaskStatus
from ork.state.store import RunChanges, StateStore
from tests.conformance.state_samples import (
    ANN,
    BEN,
    NOW,
    attempt,
    changes,
    claim,
    command,
    deploy,
    ended,
    introduce,
    later,
    new_run,
    owned_run,
    start_runs,
    task,
    wish,
)
from tests.integration.cutting_proxy import CuttingProxy, Where
from tests.postgres import Server, fresh_database, server_or_skip

pytest.importorskip("asyncpg", reason="asyncpg is not installed: nothing is tried on Postgres")

from ork.state.postgres import PostgresStore, waiting
from ork.state.postgres.connection import connect_options


@pytest.fixture
def server() -> Server:
    return server_or_skip()


@pytest.fixture
def url(server: Server) -> Iterator[str]:
    before = len(server.log())
    with fresh_database() as url:
        yield url
    assert "deadlock detected" not in server.log()[before:]


def with_stores(url: str, number: int, scene: Callable[..., Awaitable[Any]], **options: Any) -> Any:
    async def run() -> Any:
        stores = [PostgresStore(url, **options) for _ in range(number)]
        try:
            return await scene(*stores)
        finally:
            for store in stores:
                await store.close()

    return asyncio.run(run())


# ── many at once ─────────────────────────────────────────────────────────────────────────────────


def test_many_claimers_share_the_runs_and_no_run_is_claimed_twice(url: str) -> None:
    async def scene(*stores: StateStore) -> None:
        flow = await deploy(stores[0])
        await stores[0].create_runs([new_run(flow) for _ in range(300)], NOW)
        names = [SchedulerId(f"s{number}") for number in range(len(stores))]

        async def take_all(store: StateStore, name: SchedulerId) -> list[tuple[RunId, int]]:
            await introduce(store, name)
            taken = []
            while got := await claim(store, name, room=7):
                taken += [(claimed.run.id, claimed.epoch) for claimed in got]
            return taken

        shares = await asyncio.gather(*(take_all(store, name) for store, name in zip(stores, names, strict=True)))
        taken = Counter(run for share in shares for run in share)
        assert len(taken) == 300
        assert set(taken.values()) == {1}
        assert {epoch for _, epoch in taken} == {1}

    with_stores(url, 8, scene, pool_size=2)


def test_max_active_runs_holds_whoever_claims_at_the_same_time(url: str) -> None:
    async def scene(*stores: StateStore) -> None:
        flow = await deploy(stores[0], max_active_runs=5)
        await stores[0].create_runs([new_run(flow) for _ in range(60)], NOW)
        names = [SchedulerId(f"s{number}") for number in range(len(stores))]
        for store, name in zip(stores, names, strict=True):
            await introduce(store, name)
        shares = await asyncio.gather(*(claim(store, name, 4) for store, name in zip(stores, names, strict=True)))
        assert sum(map(len, shares)) == 5

    with_stores(url, 6, scene, pool_size=2)


def test_a_take_over_by_several_at_once_gives_each_run_to_one(url: str) -> None:
    async def scene(*stores: StateStore) -> None:
        await introduce(stores[0], ANN)
        await start_runs(stores[0], 40)
        assert len(await claim(stores[0], ANN)) == 40
        names = [SchedulerId(f"s{number}") for number in range(len(stores))]
        for store, name in zip(stores, names, strict=True):
            await introduce(store, name)
        await stores[0].bury([ANN])
        shares = await asyncio.gather(*(claim(store, name, 10) for store, name in zip(stores, names, strict=True)))
        taken = [(claimed.run.id, claimed.epoch) for share in shares for claimed in share]
        assert len(set(taken)) == len(taken) == 40
        assert {epoch for _, epoch in taken} == {2}

    with_stores(url, 5, scene, pool_size=2)


def test_crossed_batches_never_wait_for_each_other(url: str) -> None:
    """Commits, commands, releases, claims, burials and new limits over the same runs in every order: no deadlock."""

    async def scene(*stores: StateStore) -> None:
        flow = await deploy(stores[0], tasks=tuple(f"t{number}" for number in range(6)), max_active_runs=30)
        runs = [run.id for run in await stores[0].create_runs([new_run(flow) for _ in range(24)], NOW)]
        await stores[0].set_limits({"*": 9, "pool:api": 4, "executor:process": 7})

        async def worry(number: int, store: StateStore) -> None:
            dice, me = random.Random(number), SchedulerId(f"s{number}")
            await introduce(store, me)
            for _ in range(30):
                owned = {c.run.id: c for c in await claim(store, me, 12)}
                mine = [changes(c, wishes=(wish(id, f"t{dice.randrange(6)}", pool="api"),)) for id, c in owned.items()]
                foreign = [RunChanges(id, 1, tasks=(task("t1"),)) for id in dice.sample(runs, 6)]
                batch = [*mine, *[c for c in foreign if c.run_id not in owned]]
                dice.shuffle(batch)
                await asyncio.gather(
                    store.commit(me, batch, NOW),
                    store.submit_command(command(dice.choice(runs), CommandKind.PAUSE), NOW),
                    store.set_limits({"*": dice.randrange(3, 12), "pool:api": dice.randrange(1, 5)}),
                    store.bury([SchedulerId(f"s{other}") for other in dice.sample(range(6), 2) if other != number]),
                )
                await store.release(me, dice.sample(runs, len(runs)))
                await introduce(store, me)

        await asyncio.gather(*(worry(number, store) for number, store in enumerate(stores)))

    with_stores(url, 6, scene, pool_size=4)


def test_equal_triggers_at_once_with_one_key_give_one_run(url: str) -> None:
    async def scene(*stores: StateStore) -> None:
        flow = await deploy(stores[0])
        keys = [f"k{number}" for number in range(10)]

        async def trigger(number: int, store: StateStore) -> list[RunId]:
            order = random.Random(number).sample(keys, len(keys))
            created = await store.create_runs([new_run(flow, key=key) for key in order], NOW)
            return [run.id for _, run in sorted(zip(order, created, strict=True), key=lambda pair: pair[0])]

        answers = await asyncio.gather(*(trigger(number, stores[number % 4]) for number in range(20)))
        assert len({tuple(answer) for answer in answers}) == 1

    with_stores(url, 4, scene)


def test_of_many_that_fire_the_same_time_one_does_it(url: str) -> None:
    from ork.model.workflow import Schedule, Trigger

    async def scene(*stores: StateStore) -> None:
        from tests.conformance.state_samples import version

        flow = version(schedule=Schedule("0 * * * *"))
        await stores[0].save_version(flow, origin=None, now=NOW, next_fire=later(5))

        async def fire(store: StateStore) -> bool:
            due = new_run(flow, trigger=Trigger.SCHEDULE, scheduled_for=later(5))
            return await store.fire("flow", later(5), [due], later(3605), later(6))

        assert sum(await asyncio.gather(*(fire(store) for store in stores for _ in range(4)))) == 1
        (entry,) = await stores[0].list_schedules()
        assert entry.next_fire == later(3605)

    with_stores(url, 4, scene)


def test_no_change_is_passed_over_though_numbers_are_handed_out_before_they_are_settled(url: str) -> None:
    async def scene(*stores: StateStore) -> None:
        flow = await deploy(stores[0])
        reader, *writers = stores
        mark = (await reader.changes_since(None)).mark
        seen: set[RunId] = set()
        done = asyncio.Event()

        async def write(number: int, store: StateStore) -> None:
            for step in range(25):
                runs = [new_run(flow, f"{number}-{step}-{part}") for part in range(3)]
                await store.create_runs(runs, NOW)

        async def read() -> None:
            nonlocal mark
            while True:
                over = done.is_set()
                found = await reader.changes_since(mark, 4)
                assert found.mark >= mark
                mark = found.mark
                seen.update(run.id for run in found.runs)
                if over and not found.runs:
                    return

        reading = asyncio.ensure_future(read())
        await asyncio.gather(*(write(number, store) for number, store in enumerate(writers)))
        done.set()
        await reading
        assert len(seen) == len(writers) * 25 * 3

    with_stores(url, 6, scene, pool_size=3)


# ── connections that are lost ────────────────────────────────────────────────────────────────────


async def prepare(store: StateStore) -> dict[str, Any]:
    await introduce(store, ANN)
    await store.set_limits({"*": 500, "pool:api": 200})
    return {"owned": await owned_run(store), "ready": (await start_runs(store))[0]}


async def do_commit(store: StateStore, given: dict[str, Any]) -> None:
    owned = given["owned"]
    first = wish(owned.run.id, "load", pool="api")
    over = attempt(owned.run.id, "extract", status=AttemptStatus.SUCCESS)
    done = task("extract", TaskStatus.SUCCESS)
    run = replaced(owned.run, note="written")
    answer = await store.commit(ANN, [changes(owned, run=run, tasks=(done,), attempts=(over,), wishes=(first,))], NOW)
    assert answer.admitted


async def saw_commit(store: StateStore, given: dict[str, Any]) -> set[bool]:
    id = given["owned"].run.id
    update = await store.run_updates(id)
    assert update is not None
    return {
        update.run.note == "written",
        update.tasks[0].status is TaskStatus.SUCCESS,
        update.tasks[1].status is TaskStatus.DISPATCHED,
        len(await store.list_attempts(id)) == 2,
    }


async def do_claim(store: StateStore, given: dict[str, Any]) -> None:
    assert await claim(store, ANN)


async def saw_claim(store: StateStore, given: dict[str, Any]) -> set[bool]:
    return {await store.get_owner(given["ready"].id) == ANN}


async def do_create(store: StateStore, given: dict[str, Any]) -> None:
    flow = given["owned"].version
    given.setdefault("new", [new_run(flow), new_run(flow, key="k")])
    await store.create_runs(given["new"], NOW)


async def saw_create(store: StateStore, given: dict[str, Any]) -> set[bool]:
    return {await store.get_run(new.id) is not None for new in given["new"]}


async def do_cancel(store: StateStore, given: dict[str, Any]) -> None:
    await store.submit_command(command(given["ready"].id), NOW)


async def saw_cancel(store: StateStore, given: dict[str, Any]) -> set[bool]:
    run = await store.get_run(given["ready"].id)
    assert run is not None
    return {run.cancel_requested_at is not None, bool(await store.pending_commands(run.id))}


VERBS = {
    "commit": (do_commit, saw_commit),
    "claim": (do_claim, saw_claim),
    "create": (do_create, saw_create),
    "cancel": (do_cancel, saw_cancel),
}


@pytest.mark.slow
@pytest.mark.parametrize("where", ["before", "after"])
@pytest.mark.parametrize("verb", list(VERBS))
def test_a_connection_lost_at_any_statement_is_an_error_all_or_nothing_and_the_handle_goes_on(
    server: Server, url: str, verb: str, where: Where
) -> None:
    do, saw = VERBS[verb]

    async def lose_at(number: int, proxy: CuttingProxy, direct: StateStore, store: StateStore) -> tuple[bool, bool]:
        server.sql("TRUNCATE ork.runs, ork.tasks, ork.attempts, ork.commands", url.rsplit("/", 1)[1])
        given = await prepare(direct)
        await store.get_version(
            given["owned"].version.id
        )  # remembered, so that each time asks the same number of things
        proxy.arm(lambda _data, request: request == number, where)
        failed = False
        try:
            await do(store, given)
        except StoreUnavailableError:
            failed = True
        assert failed == proxy.has_cut
        effects = await saw(direct, given)
        assert len(effects) == 1, "half of it was written"
        return proxy.has_cut, effects.pop()

    async def lose_everywhere() -> list[bool]:
        outcomes = []
        async with CuttingProxy(server.port) as proxy:
            direct, store = PostgresStore(url), PostgresStore(server.url(url.rsplit("/", 1)[1], port=proxy.port))
            for number in range(1, 60):
                cut, happened = await lose_at(number, proxy, direct, store)
                if not cut:
                    assert happened
                    break
                outcomes.append(happened)
            await store.close()
            await direct.close()
        return outcomes

    outcomes = asyncio.run(lose_everywhere())
    assert len(outcomes) >= 4
    # Only the last request, the commit itself, can leave it done though the caller was told of a failure.
    assert outcomes[:-1] == [False] * (len(outcomes) - 1)
    assert outcomes[-1] == (where == "after")


def test_an_ambiguous_commit_is_an_error_and_what_it_wrote_is_there(server: Server, url: str) -> None:
    async def scene() -> None:
        async with CuttingProxy(server.port) as proxy:
            direct = PostgresStore(url)
            store = PostgresStore(server.url(url.rsplit("/", 1)[1], port=proxy.port))
            given = await prepare(direct)
            await store.signing_key()
            proxy.arm(lambda data, _: b"COMMIT;" in data, "after")
            with pytest.raises(StoreUnavailableError, match="connection was closed"):
                await do_create(store, given)
            assert await saw_create(direct, given) == {True}
            # Repeating it, as the caller of an ambiguous call does, gives the same runs.
            created = await store.create_runs(given["new"], later(9))
            assert [run.created_at for run in created] == [NOW, NOW]
            await store.close()
            await direct.close()

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


# ── waiting ──────────────────────────────────────────────────────────────────────────────────────


def test_waiting_for_news_runs_no_statement_at_all(server: Server, url: str) -> None:
    database = url.rsplit("/", 1)[1]
    server.log_statements(database)

    async def scene(store: PostgresStore) -> None:
        await introduce(store, ANN)
        await store.wait_for_change(0)
        asleep = asyncio.ensure_future(store.wait_for_change(None))
        await asyncio.sleep(0.2)
        before, counted = len(server.statements(database)), await store.statement_count()
        assert before > 0
        await asyncio.sleep(2)
        assert not asleep.done()
        assert await store.statement_count() == counted
        assert server.statements(database)[before:] == []
        asleep.cancel()

    with_stores(url, 1, scene)


def test_who_waits_hears_what_was_committed_while_its_connection_was_gone(server: Server, url: str) -> None:
    database = url.rsplit("/", 1)[1]
    cut = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{database}'"

    async def scene(here: PostgresStore, there: PostgresStore) -> None:
        await deploy(there)
        assert await here.wait_for_change(0)
        asleep = asyncio.ensure_future(here.wait_for_change(None))
        await asyncio.sleep(0.05)
        server.sql(cut)  # nobody's loop runs meanwhile
        server.sql(
            "UPDATE ork.pulse SET number = number + 1 WHERE slot = 3", database
        )  # a commit whose notification was lost
        assert await asyncio.wait_for(asleep, 30)

    with_stores(url, 2, scene)


def test_a_lost_notification_costs_time_and_not_the_news(server: Server, url: str, monkeypatch) -> None:
    monkeypatch.setattr(waiting, "FIRST_LOOK_SECONDS", 0.1)
    monkeypatch.setattr(waiting, "LAST_LOOK_SECONDS", 0.2)

    async def scene(store: PostgresStore) -> None:
        await store.wait_for_change(0)
        asleep = asyncio.ensure_future(store.wait_for_change(None))
        await asyncio.sleep(0.05)
        server.sql("UPDATE ork.pulse SET number = number + 1 WHERE slot = 3", url.rsplit("/", 1)[1])
        assert await asyncio.wait_for(asleep, 30)

    with_stores(url, 1, scene)


def test_behind_a_transaction_pooler_everything_works_but_hearing_at_once(url: str, monkeypatch) -> None:
    monkeypatch.setattr(waiting, "POOLER_LOOK_SECONDS", 0.1)

    async def scene(here: PostgresStore, there: PostgresStore) -> None:
        given = await prepare(here)
        for do, saw in VERBS.values():
            await do(here, given)
            assert await saw(there, given) == {True}
        assert await there.wait_for_change(0)
        asleep = asyncio.ensure_future(there.wait_for_change(None))
        await start_runs(here)
        assert await asyncio.wait_for(asleep, 30)
        assert here._db.address.statement_cache_size == 0

    with_stores(f"{url}?pooler=transaction", 2, scene)


@pytest.mark.parametrize("parameters", ["", "?pooler=transaction"])
def test_who_waits_while_the_server_goes_away_gets_an_error_and_can_wait_again(parameters: str, monkeypatch) -> None:
    monkeypatch.setattr(waiting, "POOLER_LOOK_SECONDS", 0.1)
    server = Server(server_or_skip().bin)

    async def scene() -> None:
        store = PostgresStore(server.url(server.new_database()) + parameters)
        await store.wait_for_change(0)
        asleep = asyncio.ensure_future(store.wait_for_change(None))
        await asyncio.sleep(0.05)
        server.stop()
        with pytest.raises(StoreUnavailableError):
            await asyncio.wait_for(asleep, 30)
        server.start()
        await deploy(store)
        assert not await store.wait_for_change(0)
        await store.close()

    try:
        asyncio.run(scene())
    finally:
        server.remove()


# ── keeping house ────────────────────────────────────────────────────────────────────────────────


def test_pruning_goes_in_small_batches_beside_others_and_leaves_alone_what_is_being_worked_on(url: str) -> None:
    async def scene(*stores: StateStore) -> None:
        store = stores[0]
        await introduce(store, ANN)
        await start_runs(store, 50)
        claimed = await claim(store, ANN)
        over = [ended(each, tasks=(task("load", TaskStatus.SUCCESS),)) for each in claimed]
        await store.commit(ANN, over, NOW)
        kept = claimed[0].run.id
        await store.submit_command(command(kept, CommandKind.RETRY), NOW)

        async def prune(store: StateStore) -> list[RunId]:
            gone: list[RunId] = []
            while some := await store.prune(later(60), 7):
                gone += some
            return gone

        shares = await asyncio.gather(*(prune(store) for store in stores))
        gone = [run for share in shares for run in share]
        assert len(gone) == len(set(gone)) == 49
        assert kept not in gone
        assert (await store.get_run(kept)) is not None

    with_stores(url, 3, scene)


def test_an_owner_that_was_taken_for_dead_is_fenced_and_its_take_over_sees_all_it_wrote(url: str) -> None:
    async def scene(here: StateStore, there: StateStore) -> None:
        owned = await owned_run(here, ANN)
        await introduce(there, BEN)
        await there.bury([ANN])
        late = here.commit(ANN, [changes(owned, tasks=(task("extract", TaskStatus.SUCCESS),))], NOW)
        committed, taken = await asyncio.gather(late, claim(there, BEN))
        (again,) = taken
        assert again.epoch == owned.epoch + 1
        wrote = not committed.fenced
        assert (again.tasks[0].status is TaskStatus.SUCCESS) == wrote
        final = replaced(again.run, status=RunStatus.SUCCESS)
        assert (await here.commit(ANN, [changes(owned, run=final)], NOW)).fenced == {owned.run.id}
        await there.commit(BEN, [ended(again)], NOW)

    for _ in range(6):
        with_stores(url, 2, scene)

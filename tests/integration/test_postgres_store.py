"""What only a database on a network can do wrong: claimers in a crowd, crossed batches, news that nobody hears."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

import pytest

from ork.errors import StoreUnavailableError
from ork.model.ids import RunId, SchedulerId
from ork.model.record import replaced
from ork.model.run import CommandKind, RunStatus
from ork.model.task import AttemptStatus, TaskStatus
from ork.model.workflow import Version
from ork.state.records import RunChanges
from ork.state.store import StateStore
from tests.conformance.state_samples import (
    ANN,
    BEN,
    NOW,
    changes,
    claim,
    command,
    deploy,
    ended,
    later,
    launch_request,
    new_run,
    owned_run,
    register,
    start_runs,
    task,
)
from tests.integration.conftest import with_stores
from tests.postgres import Server, server_or_skip

pytest.importorskip("asyncpg", reason="asyncpg is not installed: nothing is tried on Postgres")

from ork.state.postgres import PostgresStore, waiting

# ── many at once ─────────────────────────────────────────────────────────────────────────────────


def test_many_claimers_share_the_runs_and_no_run_is_claimed_twice(url: str) -> None:
    async def scene(*stores: StateStore) -> None:
        flow = await deploy(stores[0])
        await stores[0].create_runs([new_run(flow) for _ in range(300)], NOW)
        names = [SchedulerId(f"s{number}") for number in range(len(stores))]

        async def take_all(store: StateStore, name: SchedulerId) -> list[tuple[RunId, int]]:
            await register(store, name)
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
            await register(store, name)
        shares = await asyncio.gather(*(claim(store, name, 4) for store, name in zip(stores, names, strict=True)))
        assert sum(map(len, shares)) == 5

    with_stores(url, 6, scene, pool_size=2)


def test_a_take_over_by_several_at_once_gives_each_run_to_one(url: str) -> None:
    async def scene(*stores: StateStore) -> None:
        await register(stores[0], ANN)
        await start_runs(stores[0], 40)
        assert len(await claim(stores[0], ANN)) == 40
        names = [SchedulerId(f"s{number}") for number in range(len(stores))]
        for store, name in zip(stores, names, strict=True):
            await register(store, name)
        await stores[0].expire([ANN])
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
            await register(store, me)
            for _ in range(30):
                owned = {c.run.id: c for c in await claim(store, me, 12)}
                mine = [
                    changes(c, launches=(launch_request(id, f"t{dice.randrange(6)}", pool="api"),))
                    for id, c in owned.items()
                ]
                foreign = [RunChanges(id, 1, tasks=(task("t1"),)) for id in dice.sample(runs, 6)]
                batch = [*mine, *[c for c in foreign if c.run_id not in owned]]
                dice.shuffle(batch)
                await asyncio.gather(
                    store.commit(me, batch, NOW),
                    store.submit_command(command(dice.choice(runs), CommandKind.PAUSE), NOW),
                    store.set_limits({"*": dice.randrange(3, 12), "pool:api": dice.randrange(1, 5)}),
                    store.expire([SchedulerId(f"s{other}") for other in dice.sample(range(6), 2) if other != number]),
                )
                await store.release(me, dice.sample(runs, len(runs)))
                await register(store, me)

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


# ── what it costs ────────────────────────────────────────────────────────────────────────────────


def test_what_a_scheduler_does_again_and_again_is_one_request_each_time(server: Server, url: str) -> None:
    database = url.rsplit("/", 1)[1]
    server.log_statements(database)

    async def scene(store: PostgresStore) -> None:
        of = await deploy(store)
        await register(store, ANN)
        await usual_run(store, of)  # what is asked once for each connection and version has been asked then
        before = len(server.statements(database))
        assert await usual_run(store, of) == len(server.statements(database)) - before

    with_stores(url, 1, scene)
    assert f" {database} ERROR" not in server.log()


async def usual_run(store: PostgresStore, of: Version) -> int:
    """A run from its creation to its end; gives how many requests it should take."""
    await store.create_runs([new_run(of)], NOW)
    (claimed,) = await claim(store)
    wanted = launch_request(claimed.run.id, "load")
    began, over = {"started_at": later(1), "seq": 1}, {"finished_at": later(2), "exit_code": 0}
    running = replaced(wanted.task, status=TaskStatus.RUNNING, started_at=later(1))
    attempt_runs = replaced(wanted.attempt, status=AttemptStatus.RUNNING, **began)
    run = replaced(claimed.run, status=RunStatus.RUNNING, started_at=NOW)
    commits = (
        changes(claimed, run=run, tasks=(task("extract"), task("load")), launches=(wanted,)),
        changes(claimed, tasks=(running,), attempts=(attempt_runs,)),
        ended(
            claimed,
            tasks=(replaced(running, status=TaskStatus.SUCCESS, **over),),
            attempts=(replaced(attempt_runs, status=AttemptStatus.SUCCESS, **over),),
        ),
    )
    for each in commits:
        assert (await store.commit(ANN, [each], NOW)).fenced == frozenset()
    return 2 + len(commits)


# ── waiting ──────────────────────────────────────────────────────────────────────────────────────


def test_waiting_for_news_runs_no_statement_at_all(server: Server, url: str) -> None:
    database = url.rsplit("/", 1)[1]
    server.log_statements(database)

    async def scene(store: PostgresStore) -> None:
        await register(store, ANN)
        await store.wait_for_change(0)
        asleep = asyncio.ensure_future(store.wait_for_change(None))
        await asyncio.sleep(0.2)
        before, counted = len(server.statements(database)), store.statements
        assert before > 0
        await asyncio.sleep(2)
        assert not asleep.done()
        assert store.statements == counted
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
        await register(store, ANN)
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
        await register(there, BEN)
        await there.expire([ANN])
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

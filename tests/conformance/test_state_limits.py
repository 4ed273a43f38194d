"""What every state store promises about limits: never exceeded, whoever commits at the same time."""

from __future__ import annotations

import asyncio

import pytest

from ork.model.ids import SchedulerId
from ork.model.record import replaced
from ork.model.task import (
    Attempt,
    AttemptStatus,
    TaskStatus,
)
from ork.model.workflow import Rate
from ork.state.records import ClaimedRun, Committed
from ork.state.store import StateStore
from tests.conformance.state_samples import (
    ANN,
    BEN,
    NOW,
    attempt,
    changes,
    deploy,
    group_requests,
    launch_request,
    owned_run,
    task,
)

LEASE = 60


async def launch(store: StateStore, claimed, *launches, **more) -> Committed:
    return await store.commit(ANN, [changes(claimed, launches=launches, **more)], NOW)


def names(committed: Committed) -> set[str]:
    return {key.task.name for key in committed.admitted}


async def test_without_limits_every_launch_is_admitted(store: StateStore) -> None:
    claimed = await owned_run(store)
    run = claimed.run.id
    answer = await launch(store, claimed, launch_request(run, "extract"), launch_request(run, "load", pool="api"))
    assert (names(answer), answer.full) == ({"extract", "load"}, frozenset())
    assert [a.key.task.name for a in await store.list_attempts(run)] == ["extract", "load"]


@pytest.mark.parametrize("limit", ["*", "executor:process", "pool:api"])
async def test_launches_beyond_a_limit_are_turned_away_and_not_written(store, limit) -> None:
    await store.set_limits({limit: 1, "executor:other": 0, "pool:other": 0})
    claimed = await owned_run(store)
    run = claimed.run.id
    first, second = launch_request(run, "extract", pool="api"), launch_request(run, "load", pool="api")
    answer = await launch(store, claimed, first, second)
    assert answer == Committed(admitted=frozenset({first.attempt.key}), full=frozenset({limit}))
    assert (await store.run_updates(run)).tasks[1].status is TaskStatus.PENDING
    assert await store.list_attempts(run) == (first.attempt,)


async def test_launches_are_admitted_by_priority(store: StateStore) -> None:
    await store.set_limits({"*": 2})
    claimed = await owned_run(store, of=await deploy(store, tasks=("a", "b", "c", "d")))
    other = await owned_run(store, of=await deploy(store, "other", tasks=("e",)))
    run = claimed.run.id
    launches = (launch_request(run, "a"), launch_request(run, "b", priority=1), launch_request(run, "c"))
    answer = await store.commit(
        ANN,
        [
            changes(claimed, launches=launches),
            changes(other, launches=(launch_request(other.run.id, "e", priority=9),)),
        ],
        NOW,
    )
    assert names(answer) == {"e", "b"}


async def test_a_launch_that_is_turned_away_takes_nothing_from_the_others(store: StateStore) -> None:
    await store.set_limits({"*": 1, "pool:api": 0})
    claimed = await owned_run(store)
    run = claimed.run.id
    answer = await launch(
        store, claimed, launch_request(run, "extract", pool="api", priority=5), launch_request(run, "load")
    )
    assert names(answer) == {"load"}
    assert {"pool:api"} <= answer.full <= {"*", "pool:api"}  # that the other one is full now is a hint


@pytest.mark.parametrize("limit", ["*", "executor:process", "pool:api"])
async def test_a_limit_that_turns_a_launch_away_is_named_and_one_that_was_filled_may_be(
    store: StateStore, limit: str
) -> None:
    await store.set_limits({limit: 2, "pool:other": 0})
    claimed = await owned_run(store)
    run = claimed.run.id
    assert (await launch(store, claimed, launch_request(run, "extract", pool="api"))).full == frozenset()
    answer = await launch(store, claimed, launch_request(run, "load", pool="api"))
    assert names(answer) == {"load"}
    assert answer.full <= {limit}
    another = await owned_run(store)
    answer = await launch(store, another, launch_request(another.run.id, "extract", pool="api"))
    assert (names(answer), answer.full) == (set(), {limit})


async def test_an_attempt_that_ends_in_the_same_commit_makes_room(store: StateStore) -> None:
    await store.set_limits({"*": 1})
    claimed = await owned_run(store)
    run = claimed.run.id
    await launch(store, claimed, launch_request(run, "extract"))
    over = attempt(run, "extract", status=AttemptStatus.SUCCESS)
    answer = await launch(store, claimed, launch_request(run, "load"), attempts=(over,))
    assert names(answer) == {"load"}


async def test_attempts_of_all_runs_and_owners_count(stores) -> None:
    here, there = stores.open(), stores.open()
    await here.set_limits({"*": 1})
    one = await owned_run(here, ANN)
    two = await owned_run(there, BEN)
    assert names(await launch(here, one, launch_request(one.run.id, "extract"))) == {"extract"}
    turned_away = await there.commit(BEN, [changes(two, launches=(launch_request(two.run.id, "extract"),))], NOW)
    assert turned_away.full == {"*"}


async def test_new_limits_replace_the_old_and_touch_nothing_that_runs(store: StateStore) -> None:
    claimed = await owned_run(store)
    run = claimed.run.id
    await launch(store, claimed, launch_request(run, "extract"))
    await store.set_limits({"pool:gone": 1})
    await store.set_limits({"*": 0})
    assert [use.name for use in await store.limit_use()] == ["*"]
    assert (await launch(store, claimed, launch_request(run, "load"))).full == {"*"}
    assert not (await store.list_attempts(run))[0].status.is_final
    await store.set_limits({})
    assert names(await launch(store, claimed, launch_request(run, "load"))) == {"load"}


async def test_limit_use_says_how_full_a_limit_is_and_who_holds_it(store: StateStore) -> None:
    claimed = await owned_run(store)
    run = claimed.run.id
    held = launch_request(run, "load", pool="api")
    await launch(store, claimed, launch_request(run, "extract"), held)
    await store.set_limits({"*": 9, "pool:api": 4, "executor:process": 3, "executor:other": 2})
    uses = {use.name: (use.slots, use.used, len(use.holders)) for use in await store.limit_use()}
    assert uses == {"*": (9, 2, 2), "pool:api": (4, 1, 1), "executor:process": (3, 2, 2), "executor:other": (2, 0, 0)}
    (api,) = [use for use in await store.limit_use() if use.name == "pool:api"]
    assert api.holders == (held.attempt.key,)


async def test_limits_are_never_exceeded_whoever_commits_at_the_same_time(stores) -> None:
    here, there = stores.open(), stores.open()
    names_of_tasks = tuple(f"t{number}" for number in range(20))
    flow = await deploy(here, tasks=names_of_tasks)
    await here.set_limits({"*": 10, "pool:api": 7})
    one = await owned_run(here, ANN, of=flow)
    two = await owned_run(there, BEN, of=flow)

    async def request_all(store: StateStore, scheduler, claimed) -> list[Committed]:
        launches = (launch_request(claimed.run.id, name, pool="api") for name in names_of_tasks)
        return [
            await store.commit(scheduler, [changes(claimed, launches=(one_request,))], NOW) for one_request in launches
        ]

    answers = await asyncio.gather(request_all(here, ANN, one), request_all(there, BEN, two))
    admitted = [key for answer in answers for committed in answer for key in committed.admitted]
    assert len(admitted) == len(set(admitted)) == 7
    assert {use.name: use.used for use in await here.limit_use()} == {"*": 7, "pool:api": 7}


async def test_limits_that_hold_already_are_not_written_and_wake_nobody(stores) -> None:
    here, there = stores.open(), stores.open()
    rates = {"pool:api": Rate(5, 1.0)}
    await here.set_limits({"*": 4, "pool:api": 2}, rates)
    await there.wait_for_change(0)
    before = (await here.changes_since(None)).mark
    await here.set_limits({"pool:api": 2, "*": 4}, rates)
    assert (await here.changes_since(None)).mark == before
    assert not await there.wait_for_change(0)
    await here.set_limits({"pool:api": 2, "*": 4}, {"pool:api": Rate(6, 1.0)})
    assert await there.wait_for_change(30)


# ── groups ───────────────────────────────────────────────────────────────────────────────────────


def tasks(committed: Committed) -> set[str]:
    return {str(key.task) for key in committed.admitted}


async def fanned_out(store: StateStore, scheduler: SchedulerId = ANN, size: int = 5) -> ClaimedRun:
    """A run whose task `extract` has instances."""
    claimed = await owned_run(store, scheduler)
    instances = tuple(task("extract", index=index) for index in range(size))
    await store.commit(scheduler, [changes(claimed, tasks=instances)], NOW)
    return claimed


async def test_a_group_holds_as_many_slots_as_run_at_the_same_time(store: StateStore) -> None:
    await store.set_limits({"*": 3})
    claimed = await fanned_out(store)
    run = claimed.run.id
    answer = await launch(store, claimed, *group_requests(run, 5, parallelism=2), launch_request(run, "load"))
    assert tasks(answer) == {*(f"extract[{index}]" for index in range(5)), "load"}
    assert dict(answer.parallelism) == {f"{run}/extract/0/1": 2}
    (use,) = await store.limit_use()
    assert (use.used, use.slots) == (3, 3)


async def test_a_group_is_admitted_with_fewer_slots_where_fewer_are_free_and_says_so_in_its_rows(
    store: StateStore,
) -> None:
    await store.set_limits({"*": 3, "pool:api": 9})
    claimed = await fanned_out(store)
    run = claimed.run.id
    await launch(store, claimed, launch_request(run, "load"))
    answer = await launch(store, claimed, *group_requests(run, 5, parallelism=4, pool="api"))
    assert (len(answer.admitted), dict(answer.parallelism)) == (5, {f"{run}/extract/0/1": 2})
    rows = [row for row in await store.list_attempts(run) if row.group is not None]
    assert [(row.group.id, row.group.index, row.group.parallelism) for row in rows] == [
        (f"{run}/extract/0/1", index, 2) for index in range(5)
    ]
    other = await owned_run(store)
    assert (await launch(store, other, launch_request(other.run.id, "load"))).full == {"*"}


async def test_a_group_without_a_free_slot_is_turned_away_as_a_whole(store: StateStore) -> None:
    await store.set_limits({"pool:api": 1})
    claimed = await fanned_out(store)
    run = claimed.run.id
    await launch(store, claimed, launch_request(run, "load", pool="api"))
    answer = await launch(store, claimed, *group_requests(run, 5, parallelism=4, pool="api"))
    assert (answer.admitted, answer.full, dict(answer.parallelism)) == (frozenset(), {"pool:api"}, {})
    assert all(row.group is None for row in await store.list_attempts(run))


async def test_a_group_gives_slots_back_when_fewer_attempts_are_left_than_may_run(store: StateStore) -> None:
    await store.set_limits({"*": 2})
    claimed = await fanned_out(store, size=3)
    run = claimed.run.id
    requests = group_requests(run, 3, parallelism=2)
    await launch(store, claimed, *requests)

    def over(index: int) -> Attempt:
        return replaced(requests[index].attempt, status=AttemptStatus.SUCCESS, finished_at=NOW)

    answer = await launch(store, claimed, launch_request(run, "load"), attempts=(over(0),))
    assert (answer.admitted, answer.full) == (frozenset(), {"*"})  # two are left, and two may run
    answer = await launch(store, claimed, launch_request(run, "load"), attempts=(over(1),))
    assert tasks(answer) == {"load"}


async def test_an_attempt_of_a_group_that_waits_for_a_job_takes_no_slot(store: StateStore) -> None:
    await store.set_limits({"*": 2})
    claimed = await fanned_out(store, size=2)
    run = claimed.run.id
    requests = group_requests(run, 2, parallelism=2)
    await launch(store, claimed, *requests)
    waiting = replaced(requests[0].attempt, status=AttemptStatus.RUNNING, started_at=NOW, waits_for="[]")
    answer = await launch(store, claimed, launch_request(run, "load"), attempts=(waiting,))
    assert tasks(answer) == {"load"}


async def test_groups_of_two_schedulers_share_a_limit_and_never_exceed_it(stores) -> None:
    here, there = stores.open(), stores.open()
    await here.set_limits({"executor:process": 5})
    one = await fanned_out(here, ANN)
    two = await fanned_out(there, BEN)
    first = await here.commit(ANN, [changes(one, launches=group_requests(one.run.id, 5, parallelism=3))], NOW)
    second = await there.commit(BEN, [changes(two, launches=group_requests(two.run.id, 5, parallelism=3))], NOW)
    assert [*first.parallelism.values(), *second.parallelism.values()] == [3, 2]
    assert (await here.limit_use())[0].used == 5


async def test_a_rate_admits_the_first_attempts_of_a_group(store: StateStore) -> None:
    await store.set_limits({"pool:api": 9}, {"pool:api": Rate(2, 60.0)})
    claimed = await fanned_out(store)
    run = claimed.run.id
    answer = await launch(store, claimed, *group_requests(run, 5, parallelism=4, pool="api"))
    assert tasks(answer) == {"extract[0]", "extract[1]"}
    assert answer.full == {"rate:pool:api"}
    (use,) = [use for use in await store.limit_use() if use.name == "pool:api"]
    assert use.used == 2

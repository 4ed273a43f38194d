"""Below full limits: what fits in, whose task goes first, and how many runs are claimed."""

from __future__ import annotations

from typing import Any

import pytest

from ork.core.limits import EVERYTHING
from ork.model.ids import RunId
from ork.model.record import replaced
from ork.model.run import NewRun
from ork.objects import documents, layout
from ork.scheduler.runs import FIRST_LAUNCHES
from tests.unit.core.flows import spec, workflow
from tests.unit.scheduler.bench_top import BenchTop


@pytest.mark.parametrize("limit", [EVERYTHING, "pool:db"])
def test_what_ends_makes_room_in_the_same_commit_for_what_waits(limit: str) -> None:
    top = BenchTop(workflow(*(spec(f"t{n}", pool="db") for n in range(3))))
    top.do(top.store.set_limits({limit: 1}))
    run = top.create()
    top.step(2)
    for n in range(3):
        assert top.statuses(run)[f"t{n}"] == "dispatched"
        top.succeed(f"t{n}")
        top.step()
    assert str(top.run(run).status) == "success"


def launches_of(top: BenchTop) -> list[int]:
    """How many each commit asks for, from now on."""
    asked: list[int] = []
    commit = top.store.commit

    async def counted(scheduler: Any, changes: Any, now: Any) -> Any:
        asked.append(sum(len(each.launches) for each in changes))
        return await commit(scheduler, changes, now)

    top.store.commit = counted  # type: ignore[method-assign]
    return asked


def test_whoever_has_stood_still_begins_with_a_few_and_then_takes_more_at_a_time() -> None:
    top = BenchTop(workflow(*(spec(f"t{n}") for n in range(300))), launch_batch=100)
    asked = launches_of(top)
    top.create()
    top.step(5)
    assert asked == [FIRST_LAUNCHES, 2 * FIRST_LAUNCHES, 100, 100, 300 - 200 - 3 * FIRST_LAUNCHES]
    top.step()  # with nothing to launch
    top.create()
    top.step(2)
    assert asked[5:] == [FIRST_LAUNCHES, 2 * FIRST_LAUNCHES]


@pytest.mark.parametrize("limit", [EVERYTHING, "executor:process", "pool:db"])
def test_whoever_has_filled_a_limit_asks_for_no_more_before_something_ends(limit: str) -> None:
    top = BenchTop(workflow(*(spec(f"t{n}", pool="db") for n in range(5))), launch_batch=2)
    top.do(top.store.set_limits({limit: 2}))
    asked = launches_of(top)
    top.create()
    top.step(4)
    assert asked == [2]


def test_a_crowd_before_a_small_pool_takes_no_room_from_others_however_often_one_of_it_ends() -> None:
    crowd = (spec(f"p{n}", pool="db", priority=1) for n in range(9))
    top = BenchTop(workflow(*crowd, *(spec(f"t{n}") for n in range(9))))
    top.do(top.store.set_limits({EVERYTHING: 4, "pool:db": 1}))
    run = top.create()
    top.step(3)
    for n in range(6):
        top.succeed(f"p{n}")
        top.succeed(f"t{n}")
        top.step()
        active = [name for name, status in top.statuses(run).items() if status == "dispatched"]
        assert active == [f"p{n + 1}", *(f"t{n + ahead}" for ahead in (1, 2, 3))]


@pytest.mark.parametrize("limit", [EVERYTHING, "pool:db"])
def test_who_is_busy_below_a_full_limit_claims_no_more_runs_than_it_has_room_for(limit: str) -> None:
    top = BenchTop(workflow(*(spec(f"t{n}", pool="db") for n in range(6))), max_claimed_runs=5)
    top.do(top.store.set_limits({limit: 4}))
    for _ in range(80):
        top.create()
        top.clock.advance(0.001)
    for _ in range(80):
        top.clock.advance(0.05)
        top.step()
        for order in [each for each in top.executor.started if each.attempt.key in top.executor.alive][:2]:
            attempt, at = order.attempt, top.clock.now().isoformat()
            status = {"v": 1, "attempt": str(attempt.key), "seq": 9, "state": "success", "at": at, "started_at": at}
            signed = documents.sign(status | {"finished_at": at, "exit_code": 0}, attempt.token_hash)
            top.objects.put(layout.status_key(layout.attempt_stem(attempt.key)), signed)
            top.executor.alive.discard(attempt.key)
            top.scheduler.on_status(attempt.key)
        assert len(top.scheduler.owned_runs) <= 6


@pytest.mark.parametrize("limit", [EVERYTHING, "executor:process", "pool:db"])
@pytest.mark.parametrize(
    ("urgent", "order"),
    [
        pytest.param({"a": 9}, ["a0", "a1", "a2", "b0", "b1", "b2"], id="the first run"),
        pytest.param({"b": 9}, ["a0", "b0", "b1", "b2", "a1", "a2"], id="the second run"),
        pytest.param({"b1": 9}, ["a0", "b1", "a1", "b0", "a2", "b2"], id="one task"),
        pytest.param({}, ["a0", "a1", "b0", "a2", "b1", "b2"], id="none: they take turns"),
    ],
)
def test_before_a_full_limit_the_more_urgent_goes_first_whichever_run_it_belongs_to(
    limit: str, urgent: dict[str, int], order: list[str]
) -> None:
    flows = [
        replaced(
            workflow(
                *(
                    spec(f"{name}{n}", pool="db", priority=urgent.get(f"{name}{n}", urgent.get(name, 0)))
                    for n in range(3)
                )
            ),
            name=name,
        )
        for name in "ab"
    ]
    top = BenchTop(*flows)
    top.do(top.store.set_limits({limit: 1}))
    runs = []
    for name in "ab":
        runs.append(top.create(name))
        top.step(3)
    started = []
    for _ in range(6):
        active = [task for run in runs for task, status in top.statuses(run).items() if status == "dispatched"]
        started += active
        for task in active:
            top.succeed(task)
        top.step(3)
    assert started == order


def test_a_wide_run_that_is_less_urgent_leaves_all_the_room_to_one_that_is_more_so() -> None:
    flows = [replaced(workflow(*(spec(f"{name}{n}") for n in range(80))), name=name) for name in "ab"]
    top = BenchTop(*flows)
    top.do(top.store.set_limits({EVERYTHING: 50}))
    low, high = top.create("a"), top.create("b", priority=1)
    top.step(4)
    active = {run: list(top.statuses(run).values()).count("dispatched") for run in (low, high)}
    assert active == {low: 0, high: 50}


def test_whoever_filled_a_limit_before_anybody_waited_looks_for_dead_schedulers_once_somebody_does() -> None:
    flows = {
        "dead": workflow(spec("b", pool="db")),
        "last": workflow(spec("a", pool="db")),
        "late": workflow(spec("x"), spec("q", "x", pool="db")),
    }
    top = BenchTop(*(replaced(flow, name=name) for name, flow in flows.items()), max_claimed_runs=2)
    top.do(top.store.set_limits({"pool:db": 2}))
    other = top.new_scheduler("other")
    top.do(other.start(top.clock.now()))
    dead = top.create("dead")
    for _ in range(3):
        top.do(other.step(top.clock.now()))
    late = top.create("late")
    top.create("last")
    top.step(3)
    top.succeed("x")
    top.step(3)
    assert top.statuses(late)["q"] == "pending"
    for number in range(100):  # the other says nothing any more, and our own task goes on
        top.clock.advance(1.0)
        top.say("a", "running", number + 2)
        top.step()
    assert dead in top.scheduler.owned_runs


def test_after_its_lease_was_lost_a_scheduler_claims_again_the_run_that_holds_the_slots() -> None:
    """It has room for one run, and claims the urgent one first, which waits for the slot of the other."""
    top = BenchTop(workflow(spec("a")), max_claimed_runs=1)
    top.do(top.store.set_limits({"*": 1}))
    holder = top.create()
    top.step(2)
    urgent = top.create(priority=5)
    for _ in range(2):
        top.clock.advance(100)  # it stood still for longer than its lease
        top.step(6)
        top.clock.advance(2)
        top.step(6)
    assert sorted(top.scheduler.owned_runs) == [holder, urgent]


def test_a_run_that_is_created_while_a_claim_is_answered_is_claimed_by_the_next_step() -> None:
    """The store has looked, and its answer is on its way: the notification of the new run comes first."""
    top = BenchTop(workflow(spec("a")))
    top.step()
    claim_runs, late = top.store.claim_runs, []

    async def claim_then_create(*args: Any, **kwargs: Any) -> Any:
        claim = await claim_runs(*args, **kwargs)
        if not late:
            new = NewRun(RunId("late"), "flow", top.versions["flow"].id)
            late.extend(await top.store.create_runs([new], top.clock.now()))
            top.scheduler.wake()
        return claim

    top.store.claim_runs = claim_then_create  # type: ignore[method-assign]
    top.scheduler.wake()
    top.step(3)
    assert top.statuses(RunId("late")) == {"a": "dispatched"}


def test_a_scheduler_that_claims_in_batches_claims_the_rest_in_the_next_steps() -> None:
    top = BenchTop(workflow(spec("t")))
    top.scheduler.claim_in_batches(2)
    for _ in range(5):
        top.create()
    owned = []
    for _ in range(3):
        top.step()
        owned.append(len(top.scheduler.owned_runs))
    assert owned == [2, 4, 5]


# ── when a run has ended ─────────────────────────────────────────────────────────────────────────


def claims_of(top: BenchTop) -> list[int]:
    """How many runs each claim gets, from now on."""
    got: list[int] = []
    claim = top.store.claim_runs

    async def counted(*args: Any, **kwargs: Any) -> Any:
        claimed = await claim(*args, **kwargs)
        got.append(len(claimed.runs))
        return claimed

    top.store.claim_runs = counted
    return got


@pytest.mark.parametrize("runs", [1, 2])
def test_after_the_end_of_a_run_others_are_looked_for_only_where_some_were_left(runs: int) -> None:
    """The store says whether its claim left runs that wait, here because of `max_active_runs`."""
    pytest.importorskip("google.cloud.firestore_v1", reason="google-cloud-firestore is not installed")
    from tests.unit.state.test_firestore_races import Service

    top = BenchTop(workflow(spec("a"), max_active_runs=1), store=Service().store())
    ids = [top.create() for _ in range(runs)]
    got = claims_of(top)
    for _ in range(runs):
        top.step(3)
        top.succeed("a")
    top.step(3)
    assert [str(top.run(id).status) for id in ids] == ["success"] * runs
    assert got == [1] * runs

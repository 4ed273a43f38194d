"""Which launches fit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ork.core.limits import limit_names
from ork.model.ids import RunId
from ork.model.record import replaced
from ork.model.workflow import Rate
from ork.state.admission import ActiveAttempts, LaunchRates, TokenBucket, admit, room_left
from tests.conformance.state_samples import launch_request

RUN = RunId("r")
pools = st.sampled_from((None, "api", "db"))
executors = st.sampled_from(("process", "python"))
limits = st.dictionaries(
    st.sampled_from(("*", "executor:process", "executor:python", "pool:api", "pool:db")), st.integers(0, 5)
)


NO_RATES = LaunchRates({}, lambda name, rate: TokenBucket(rate, rate.count, 0.0))


def test_an_attempt_counts_against_the_whole_its_executor_and_its_pool() -> None:
    assert limit_names("process", None) == ("*", "executor:process")
    assert limit_names("process", "api") == ("*", "executor:process", "pool:api")


def test_room_is_what_active_attempts_leave_and_may_be_overdrawn() -> None:
    active = [ActiveAttempts("process", "api", 3), ActiveAttempts("python", None, 2)]
    assert room_left({"*": 9, "pool:api": 1, "executor:x": 4}, active) == {"*": 4, "pool:api": -2, "executor:x": 4}


@given(limits, st.lists(st.tuples(executors, pools, st.integers(-2, 2)), max_size=12))
def test_admitted_launches_never_exceed_a_limit_and_no_room_is_wasted(room: dict[str, int], wanted: list) -> None:
    launches = [launch_request(RUN, "t", priority, executor=executor, pool=pool) for executor, pool, priority in wanted]
    answer = admit(launches, room, NO_RATES)
    used = dict.fromkeys(room, 0)
    for place in answer.admitted:
        for name in limit_names(*wanted[place][:2]):
            if name in used:
                used[name] += 1
    assert all(used[name] <= room[name] for name in room)
    turned_away = set(range(len(launches))) - answer.admitted
    for place in turned_away:
        assert any(name in room and used[name] == room[name] for name in limit_names(*wanted[place][:2]))
    counted = {name for executor, pool, _ in wanted for name in limit_names(executor, pool) if name in room}
    assert answer.full == {name for name in counted if used[name] == room[name]}


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=10), st.integers(0, 10))
def test_who_is_turned_away_has_no_higher_priority_than_who_is_admitted(priorities: list[int], slots: int) -> None:
    launches = [launch_request(RUN, "t", priority) for priority in priorities]
    answer = admit(launches, {"*": slots}, NO_RATES)
    inside = [priorities[place] for place in answer.admitted]
    outside = [priority for place, priority in enumerate(priorities) if place not in answer.admitted]
    assert len(inside) == min(slots, len(launches))
    assert not inside or not outside or min(inside) >= max(outside)


def test_a_rate_lets_a_burst_pass_and_then_says_when_the_next_may_start() -> None:
    rate = Rate(2, 10.0)
    launches = [replaced(launch_request(RUN, "a", pool="api"), rate=("rate:task:flow.a", rate)) for _ in range(3)]
    rates = LaunchRates({}, lambda _name, rate: TokenBucket(rate, rate.count, 0.0))
    answer = admit(launches, {}, rates)
    assert answer.admitted == {0, 1}
    assert answer.full == {"rate:task:flow.a"}
    assert answer.again_in == pytest.approx(5.0)
    assert answer.buckets["rate:task:flow.a"].tokens == pytest.approx(0.0)


def test_a_bucket_fills_evenly_and_never_beyond_one_burst() -> None:
    assert TokenBucket(Rate(2, 10.0), 0.0, 5.0).tokens == pytest.approx(1.0)
    assert TokenBucket(Rate(2, 10.0), 0.0, 1000.0).tokens == pytest.approx(2.0)


def test_a_pools_rate_holds_for_all_its_tasks() -> None:
    rates = LaunchRates({"pool:api": Rate(1, 1.0)}, lambda _name, rate: TokenBucket(rate, rate.count, 0.0))
    answer = admit(
        [launch_request(RUN, "a", pool="api"), launch_request(RUN, "b"), launch_request(RUN, "c", pool="api")],
        {},
        rates,
    )
    assert answer.admitted == {0, 1}
    assert answer.full == {"rate:pool:api"}

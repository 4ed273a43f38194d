"""Which launches fit."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ork.model.ids import RunId
from ork.state.admission import ActiveAttempts, admit, limits_of, room_left
from tests.conformance.state_samples import wish

RUN = RunId("r")
pools = st.sampled_from((None, "api", "db"))
executors = st.sampled_from(("process", "python"))
limits = st.dictionaries(
    st.sampled_from(("*", "executor:process", "executor:python", "pool:api", "pool:db")), st.integers(0, 5)
)


def test_an_attempt_counts_against_the_whole_its_executor_and_its_pool() -> None:
    assert limits_of("process", None) == ("*", "executor:process")
    assert limits_of("process", "api") == ("*", "executor:process", "pool:api")


def test_room_is_what_active_attempts_leave_and_may_be_overdrawn() -> None:
    active = [ActiveAttempts("process", "api", 3), ActiveAttempts("python", None, 2)]
    assert room_left({"*": 9, "pool:api": 1, "executor:x": 4}, active) == {"*": 4, "pool:api": -2, "executor:x": 4}


@given(limits, st.lists(st.tuples(executors, pools, st.integers(-2, 2)), max_size=12))
def test_admitted_wishes_never_exceed_a_limit_and_no_room_is_wasted(room: dict[str, int], wanted: list) -> None:
    wishes = [wish(RUN, "t", priority, executor=executor, pool=pool) for executor, pool, priority in wanted]
    answer = admit(wishes, room)
    used = dict.fromkeys(room, 0)
    for place in answer.admitted:
        for name in limits_of(*wanted[place][:2]):
            if name in used:
                used[name] += 1
    assert all(used[name] <= room[name] for name in room)
    turned_away = set(range(len(wishes))) - answer.admitted
    for place in turned_away:
        assert any(name in room and used[name] == room[name] for name in limits_of(*wanted[place][:2]))
    assert bool(answer.full) == bool(turned_away)


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=10), st.integers(0, 10))
def test_who_is_turned_away_has_no_higher_priority_than_who_is_admitted(priorities: list[int], slots: int) -> None:
    wishes = [wish(RUN, "t", priority) for priority in priorities]
    answer = admit(wishes, {"*": slots})
    inside = [priorities[place] for place in answer.admitted]
    outside = [priority for place, priority in enumerate(priorities) if place not in answer.admitted]
    assert len(inside) == min(slots, len(wishes))
    assert not inside or not outside or min(inside) >= max(outside)

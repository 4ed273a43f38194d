"""Who is looked at, and when."""

from __future__ import annotations

from datetime import UTC, datetime

from ork.model.ids import AttemptKey, RunId, TaskKey
from ork.model.task import Attempt, AttemptStatus
from ork.scheduler.watchlist import FEW, Watched, Watchlist

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def watched(run: str, number: int = 1, waits_for: str | None = None) -> Watched:
    key = AttemptKey(RunId(run), TaskKey("task"), number)
    return Watched(
        Attempt(key, AttemptStatus.RUNNING, "process", "name", "00", NOW, waits_for=waits_for), None, 0.0, 0.0
    )


def due(watchlist: Watchlist) -> list[AttemptKey]:
    return [each.attempt.key for each in watchlist.take_due()]


def test_each_is_looked_at_when_its_time_has_come_and_not_before() -> None:
    clock = Clock()
    watchlist, early, late = Watchlist(clock), watched("a"), watched("b")
    watchlist.add(late, 2.0)
    watchlist.add(early, 1.0)
    assert (watchlist.next_look, due(watchlist)) == (1.0, [])
    clock.now = 1.5
    assert due(watchlist) == [early.attempt.key]
    assert watchlist.next_look == 2.0


def test_what_is_to_be_looked_at_later_is_not_looked_at_at_its_first_time() -> None:
    clock = Clock()
    watchlist, only = Watchlist(clock), watched("a")
    watchlist.add(only, 1.0)
    watchlist.look_again(only, 5.0)
    clock.now = 2.0
    assert (due(watchlist), watchlist.next_look) == ([], 5.0)


def test_a_look_that_was_put_off_twice_and_then_brought_forward_comes_once_and_in_time() -> None:
    clock = Clock()
    watchlist, only = Watchlist(clock), watched("a")
    watchlist.add(only, 1.0)
    for seconds in (5.0, 9.0, 3.0):
        watchlist.look_again(only, seconds)
    seen = []
    for now in range(12):
        clock.now = float(now)
        seen += [now for _ in watchlist.take_due()]
    assert (seen, watchlist.next_look) == ([3], None)


def test_a_look_that_was_put_off_while_another_comes_up_is_not_forgotten() -> None:
    clock = Clock()
    watchlist, first, second = Watchlist(clock), watched("a"), watched("b")
    watchlist.add(first, 1.0)
    watchlist.add(second, 2.0)
    watchlist.look_again(first, 4.0)
    clock.now = 2.5
    assert due(watchlist) == [second.attempt.key]
    assert watchlist.next_look == 4.0
    clock.now = 4.0
    assert due(watchlist) == [first.attempt.key]


def test_news_are_looked_at_at_once_and_once_but_not_of_strangers() -> None:
    watchlist, only = Watchlist(Clock()), watched("a")
    watchlist.add(only, 10.0)
    watchlist.look_now(only.attempt.key)
    watchlist.look_now(watched("b").attempt.key)
    assert watchlist.next_look == 0.0
    assert due(watchlist) == [only.attempt.key]
    assert (due(watchlist), watchlist.next_look) == ([], 10.0)


def test_a_run_that_is_forgotten_takes_nobody_else_along() -> None:
    clock = Clock()
    watchlist = Watchlist(clock)
    for each in (watched("a"), watched("a", 2, waits_for="[]"), watched("b")):
        watchlist.add(each, 1.0)
        watchlist.look_now(each.attempt.key)
    assert watchlist.waiting_runs == 1
    watchlist.forget_run(RunId("a"))
    clock.now = 1.0
    assert [each.attempt.run for each in watchlist.take_due()] == ["b"]
    assert ([each.attempt.run for each in watchlist], watchlist.waiting_runs) == (["b"], 0)


def test_looks_that_count_no_more_do_not_pile_up() -> None:
    watchlist, only = Watchlist(Clock()), watched("a")
    watchlist.add(only, 1.0)
    for seconds in range(10 * FEW):
        watchlist.look_again(only, 1.0 + seconds)
    assert len(watchlist._looks) <= FEW + 4
    assert watchlist.next_look == 10.0 * FEW

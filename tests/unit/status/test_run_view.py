from __future__ import annotations

from ork.model.ids import TaskKey
from ork.model.record import replaced
from ork.model.task import TaskStatus
from ork.state.records import RunUpdate
from ork.status.history import History
from tests.unit.status.sample_runs import at, done, running, spec, view_of, waiting


def test_a_view_counts_tasks_by_status_as_they_change() -> None:
    view = view_of([spec("a"), spec("b")], [waiting("a"), waiting("b")])
    view.apply(RunUpdate(view.run, (running("a"),), 2))
    assert (view.count(TaskStatus.PENDING), view.count(TaskStatus.RUNNING), view.done, view.total) == (1, 1, 0, 2)
    view.apply(RunUpdate(view.run, (done("a"),), 3))
    assert (view.count(TaskStatus.RUNNING), view.done, view.mark) == (0, 1, 3)


def test_what_did_not_change_is_not_told_again() -> None:
    view = view_of([spec("a")], [waiting("a")])
    assert view.apply(RunUpdate(view.run, (waiting("a"),), 2)) == []


def test_changes_come_in_the_order_the_tasks_ended() -> None:
    view = view_of([spec("a"), spec("b"), spec("c")], [])
    changed = view.apply(RunUpdate(view.run, (waiting("c"), done("a", 9), done("b", 3)), 2))
    assert [task.key.name for task in changed] == ["b", "a", "c"]


def test_tasks_that_wait_for_a_retry_are_known_apart() -> None:
    view = view_of([spec("a")], [waiting("a", retry_at=at(9), attempt=1)])
    assert list(view.retrying) == [TaskKey("a")]
    view.apply(RunUpdate(view.run, (running("a"),), 2))
    assert not view.retrying


def test_a_run_without_tasks_yet_counts_those_of_its_workflow() -> None:
    assert view_of([spec("a"), spec("b")], []).total == 2


def test_tries_begin_anew_in_each_round() -> None:
    view = view_of([spec("a", retries=2)], [])
    assert view.attempt_numbers(replaced(done("a"), attempt=5, earlier_attempts=3)) == (2, 3)


def test_time_left_is_guessed_from_the_runs_that_took_longer() -> None:
    history = History([10.0, 20.0, 30.0], {})
    assert history.seconds_left(5) == 15
    assert history.seconds_left(25) == 5
    assert history.seconds_left(31) is None


def test_slowness_is_worth_a_word_only_when_remarkable() -> None:
    history = History([], {"a": [1.0] * 20, "new": [1.0]})
    assert history.slower_than("a", 2) == "slower than 20 of the last 20"
    assert history.slower_than("a", 0.5) is None
    assert history.slower_than("new", 99) is None
    assert history.slower_than("unknown", 99) is None

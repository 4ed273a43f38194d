"""Instances of one task that start as one unit."""

from __future__ import annotations

from datetime import timedelta

from ork.core.launch_groups import RETRY_WINDOW_SECONDS
from ork.core.limits import EVERYTHING, Capacity
from ork.model.task import Attempt, Failure, FailureKind, GiveUp, GroupPlace
from ork.model.workflow import Const
from tests.unit.core.flows import RUN, Play, spec, workflow

ITEMS = Const([1, 2, 3, 4, 5])


def fanned_out(size: int = 100, slots: int = 1000, **fields: object) -> Play:
    return Play(workflow(spec("load", foreach=ITEMS, **fields)), group_size=size, slots=slots)


def groups(play: Play) -> dict[str, list[str]]:
    """The names of the attempts of each group, in the order of their places."""
    found: dict[str, list[tuple[int, str]]] = {}
    for attempt in play.attempts.values():
        if attempt.group is not None:
            found.setdefault(attempt.group.id, []).append((attempt.group.index, str(attempt.key.task)))
    return {id: [name for _, name in sorted(members)] for id, members in found.items()}


def attempt_of(play: Play, name: str) -> Attempt:
    return next(attempt for attempt in reversed(play.attempts.values()) if str(attempt.key.task) == name)


def place(play: Play, name: str) -> GroupPlace:
    found = attempt_of(play, name).group
    assert found is not None
    return found


def test_instances_that_are_ready_together_are_one_group_in_order() -> None:
    play = fanned_out()
    play.launch()
    assert groups(play) == {f"{RUN}/load/0/1": [f"load[{index}]" for index in range(5)]}
    assert place(play, "load[3]") == GroupPlace(f"{RUN}/load/0/1", 3, 5)


def test_a_group_is_offered_whole_also_beyond_the_batch() -> None:
    play = fanned_out()
    assert len(play.launch(limit=1)) == 5


def test_an_executor_that_starts_no_groups_gets_none() -> None:
    play = fanned_out(size=0)
    play.launch()
    assert groups(play) == {}


def test_a_task_without_instances_is_never_in_a_group() -> None:
    play = Play(workflow(spec("alone")), group_size=10)
    assert play.launch() == ["alone"]
    assert groups(play) == {}


def test_more_instances_than_the_largest_group_become_several_groups() -> None:
    play = fanned_out(size=2)
    while play.launch():
        pass
    assert [len(members) for members in groups(play).values()] == [2, 2, 1]


def test_concurrency_is_the_parallelism_of_the_group_and_not_its_size() -> None:
    play = fanned_out(concurrency=2)
    assert len(play.launch()) == 5
    assert place(play, "load[4]").parallelism == 2


def test_groups_of_one_task_share_its_concurrency() -> None:
    play = fanned_out(size=2, concurrency=3)
    play.launch()
    play.launch()
    assert [place(play, name).parallelism for name in ("load[0]", "load[2]")] == [2, 1]
    assert play.launch() == []  # three may run
    play.succeed("load[0]")
    assert play.launch() == ["load[4]"]  # one is left of the first group, so it holds one slot


def test_a_rebuilt_machine_counts_the_slots_of_the_groups_that_are_active() -> None:
    play = fanned_out(size=2, concurrency=3)
    play.launch()
    play.launch()
    play.rebuild()
    assert play.launch() == []
    play.succeed("load[0]")
    assert play.launch() == ["load[4]"]


def test_instances_that_were_started_alone_count_for_the_concurrency_of_a_group() -> None:
    play = fanned_out(size=0, concurrency=2)
    play.launch()
    play.group_size = 100  # another scheduler, whose executor starts groups, takes over
    play.rebuild()
    assert play.launch() == []
    play.succeed("load[0]")
    assert play.launch() == ["load[2]", "load[3]", "load[4]"]
    assert place(play, "load[2]").parallelism == 1


def test_a_group_that_got_fewer_slots_keeps_that_in_its_rows() -> None:
    play = fanned_out(slots=2)
    play.launch()
    assert {attempt.group and attempt.group.parallelism for attempt in play.machine.active.values()} == {2}
    assert play.machine.working(f"{RUN}/load/0/1") == 5


def test_a_group_counts_against_the_known_capacity_with_the_slots_it_wants() -> None:
    play = fanned_out(concurrency=2)
    capacity = Capacity()
    capacity.exhaust([EVERYTHING])
    capacity.release([EVERYTHING], 3)
    play.machine.offer(1, lambda key, _spec, _group: (str(key), "hash"), play.now, capacity)
    assert capacity.remaining(EVERYTHING) == 1


def test_a_group_that_is_turned_away_is_offered_again() -> None:
    play = fanned_out()
    play.machine.offer(10, lambda key, _spec, _group: (str(key), "hash"), play.now)
    play.machine.settle(frozenset())
    assert len(play.launch()) == 5


def test_instances_that_a_rate_turned_away_are_the_next_group() -> None:
    play = fanned_out()
    offered = play.machine.offer(10, lambda key, _spec, _group: (str(key), "hash"), play.now)
    first = [request.attempt for request in offered[:2]]
    play.machine.settle(frozenset(attempt.key for attempt in first), {first[0].group.id: 2 if first[0].group else 0})
    assert play.launch() == ["load[2]", "load[3]", "load[4]"]
    assert place(play, "load[2]") == GroupPlace(f"{RUN}/load/2/1", 0, 3)


def test_instances_that_failed_come_back_as_one_smaller_group_with_their_next_attempt() -> None:
    play = fanned_out(retries=1, retry_delay=1.0)
    play.launch()
    play.fail("load[1]")
    play.now += timedelta(seconds=5)
    play.fail("load[3]")
    for name in ("load[0]", "load[2]"):
        play.succeed(name)
    play.wait(RETRY_WINDOW_SECONDS - 5)
    assert play.launch() == []  # not yet
    play.wait(1)
    assert play.launch() == ["load[1]", "load[3]"]
    assert place(play, "load[3]") == GroupPlace(f"{RUN}/load/1/2", 1, 2)


def test_instances_that_failed_at_the_same_time_come_back_together_though_delays_have_jitter() -> None:
    play = fanned_out(retries=9)
    for _ in range(8):  # the delays grow up to a minute
        play.launch()
        for index in (3, 0, 4, 1, 2):
            play.fail(f"load[{index}]")
        assert (
            len({play.machine.tasks[attempt_of(play, f"load[{index}]").key.task].retry_at for index in range(4)}) == 1
        )
        play.wait(75 + RETRY_WINDOW_SECONDS)


def test_instances_that_were_lost_do_not_separate_those_that_failed() -> None:
    play = fanned_out(retries=9)
    for _ in range(6):
        play.launch()
        for index in range(5):
            play.fail(f"load[{index}]")
        play.wait(75 + RETRY_WINDOW_SECONDS)
    play.launch()
    for index, kind in enumerate((FailureKind.EXIT, FailureKind.LOST, FailureKind.EXIT, FailureKind.LOST)):
        play.fail(f"load[{index}]", Failure(kind, "ended"))
        play.now += timedelta(seconds=2)
    due = [play.machine.tasks[attempt_of(play, f"load[{index}]").key.task].retry_at for index in range(4)]
    assert due[0] == due[2] != due[1] == due[3]


def test_a_machine_that_is_rebuilt_in_between_brings_them_back_together_too() -> None:
    play = fanned_out(retries=1, retry_delay=1.0)
    play.launch()
    play.fail("load[1]")
    play.rebuild()
    play.fail("load[3]")
    play.rebuild()
    play.wait(RETRY_WINDOW_SECONDS + 1)
    assert play.launch() == ["load[1]", "load[3]"]


def test_the_last_of_a_group_is_retried_without_waiting_for_others() -> None:
    play = fanned_out(retries=1, retry_delay=1.0)
    play.launch()
    for index in range(4):
        play.succeed(f"load[{index}]")
    play.fail("load[4]")
    play.wait(1)
    assert play.launch() == ["load[4]"]


def test_a_retry_is_never_earlier_than_its_own_delay_and_at_most_one_window_later() -> None:
    play = fanned_out(retries=3, retry_delay=100.0)
    play.launch()
    play.fail("load[0]")
    play.wait(90)
    play.fail("load[1]")
    due = [play.machine.tasks[attempt_of(play, name).key.task].retry_at for name in ("load[0]", "load[1]")]
    assert [(at - play.now).total_seconds() + wait for at, wait in zip(due, (90, 0), strict=True) if at] == [
        100.0 + RETRY_WINDOW_SECONDS,
        100.0 + RETRY_WINDOW_SECONDS,
    ]


def test_an_instance_that_is_given_up_ends_alone() -> None:
    play = fanned_out()
    play.launch()
    play.give_up("load[2]", GiveUp.CANCEL, Failure(FailureKind.CANCELLED, "not needed"))
    play.close("load[2]")
    assert play.status("load[2]") == "cancelled"
    assert [name for name, status in play.statuses().items() if status == "dispatched"] == [
        "load[0]",
        "load[1]",
        "load[3]",
        "load[4]",
    ]
    assert play.machine.working(f"{RUN}/load/0/1") == 4


def test_an_instance_that_ended_before_its_group_was_offered_is_not_in_it() -> None:
    play = Play(workflow(spec("load", foreach=ITEMS), spec("other", priority=1), fail_fast=True), group_size=10)
    assert play.launch(limit=1) == ["other"]
    play.fail("other")  # ends the instances that were ready
    assert play.launch() == []

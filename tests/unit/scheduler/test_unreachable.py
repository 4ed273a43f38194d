"""Attempts whose machine no longer answers: over when they must have ended themselves, and not before."""

from __future__ import annotations

import pytest

from ork.executors.executor import PLATFORM_TRAITS, ExecutorTraits
from ork.model.ids import RunId
from ork.model.record import replaced
from ork.model.run import CommandKind, RunCommand, RunStatus
from ork.model.task import Attempt
from ork.model.workflow import Container, OnUnreachable, TaskSpec
from tests.unit.core.flows import spec, workflow

from .bench_top import BenchTop

STALE, FENCE = 60.0, 45.0


def running(task: TaskSpec, traits: ExecutorTraits | None = None, **options: object) -> tuple[BenchTop, RunId]:
    """An attempt that has written its first heartbeat, and whose machine answers no more."""
    top = BenchTop(workflow(task), **options)
    top.executor.traits = traits or top.executor.traits
    run = top.create()
    top.step(2)
    top.win_gate(task.name)
    top.say(task.name, "running", 1)
    top.step(2)
    top.executor.is_reachable = False
    return top, run


def attempts(top: BenchTop, run: RunId) -> list[Attempt]:
    return list(top.do(top.store.list_attempts(run)))


def let_pass(top: BenchTop, seconds: float, by: float = 5.0) -> None:
    """Steps as a scheduler does that looks now and then."""
    while seconds > 0:
        top.clock.advance(min(by, seconds))
        seconds -= by
        top.step(2)


def ask(top: BenchTop, run: RunId, kind: CommandKind, task: str | None = None) -> None:
    top.do(top.store.submit_command(RunCommand(run, kind, by="ann", task=task), top.clock.now()))
    top.scheduler.wake()
    top.step(2)


def test_a_silent_attempt_is_over_after_the_stale_limit_and_the_fence_time() -> None:
    top, run = running(spec("a", retries=1))
    let_pass(top, STALE + FENCE - 6)
    (first,) = attempts(top, run)
    assert (str(first.status), str(first.closing)) == ("running", "stale")
    let_pass(top, 12)
    first, second = attempts(top, run)
    assert (str(first.status), str(second.status)) == ("lost", "dispatched")
    assert first.failure is not None
    assert "does not answer, and its worker has been silent for" in first.failure.message


def test_a_worker_with_a_longer_fence_is_waited_for_longer() -> None:
    """It was started by a scheduler with other settings."""
    top, run = running(spec("a", retries=1), fence_seconds=300.0)
    top.options = replaced(top.options, fence_seconds=FENCE)
    hand_over(top, "ben")
    let_pass(top, STALE + FENCE + 20)
    assert len(attempts(top, run)) == 1
    let_pass(top, 300 - FENCE)
    assert len(attempts(top, run)) == 2


def test_where_the_platform_confirms_deaths_workers_go_on_without_heartbeats_for_ten_minutes() -> None:
    top, run = running(spec("a", retries=1), PLATFORM_TRAITS)
    let_pass(top, STALE + 600 - 10)
    assert len(attempts(top, run)) == 1
    let_pass(top, 20)
    assert len(attempts(top, run)) == 2
    top, run = running(spec("a", retries=1), PLATFORM_TRAITS)
    top.executor.is_reachable = True  # its execution runs: that counts as a heartbeat
    let_pass(top, 10 * (STALE + 600), by=30)
    assert len(attempts(top, run)) == 1


def test_a_heartbeat_begins_the_count_anew() -> None:
    top, run = running(spec("a", retries=1))
    let_pass(top, STALE + FENCE - 10)
    top.say("a", "running", 2)
    let_pass(top, STALE + FENCE - 10)
    assert len(attempts(top, run)) == 1
    let_pass(top, 20)
    assert len(attempts(top, run)) == 2


def test_a_late_success_wins_while_it_is_waited_for_and_changes_nothing_afterwards() -> None:
    top, run = running(spec("a", retries=1))
    let_pass(top, STALE + FENCE - 10)
    top.say("a", "success", 2, exit_code=0)
    top.step(2)
    assert top.run(run).status is RunStatus.SUCCESS
    top, run = running(spec("a", retries=1))
    late = top.order("a")
    let_pass(top, STALE + FENCE + 10)
    top.executor.started.append(late)
    top.say("a", "success", 2, exit_code=0)
    top.step(2)
    assert [str(each.status) for each in attempts(top, run)] == ["lost", "dispatched"]


def test_words_that_are_its_own_and_make_no_sense_are_a_sign_of_life() -> None:
    """A worker of a newer version does not fence itself as long as it can write."""
    top, run = running(spec("a", retries=1))
    for seq in range(2, 30):
        top.say("a", "elated", seq)
        let_pass(top, 10)
    assert [str(each.status) for each in attempts(top, run)] == ["running"]
    let_pass(top, STALE + FENCE + 5)
    assert [str(each.status) for each in attempts(top, run)] == ["lost", "dispatched"]


def test_each_status_that_cannot_be_decoded_counts_once_however_many_owners_see_it() -> None:
    top, run = running(spec("a", retries=1))
    top.say("a", "elated", 2)
    for number in range(5):
        hand_over(top, f"owner{number}")
    assert [str(each.status) for each in attempts(top, run)] == ["lost", "dispatched"]


def test_owners_who_each_see_another_status_that_cannot_be_decoded_give_nothing_up() -> None:
    top, run = running(spec("a", retries=1))
    for seq in range(2, 8):
        top.say("a", "elated", seq)
        hand_over(top, f"owner{seq}")
    assert [str(each.status) for each in attempts(top, run)] == ["running"]


def test_a_status_that_can_be_decoded_again_is_a_sign_of_life() -> None:
    top, run = running(spec("a", retries=1))
    top.say("a", "elated", 2)
    let_pass(top, STALE + FENCE - 10)
    hand_over(top, "ben")
    top.say("a", "running", 3)
    hand_over(top, "cid")
    hand_over(top, "dan")
    assert [str(each.status) for each in attempts(top, run)] == ["running"]
    hand_over(top, "eve")
    assert [str(each.status) for each in attempts(top, run)] == ["lost", "dispatched"]


def test_the_time_of_an_older_heartbeat_is_not_taken_for_that_of_one_which_was_committed_since() -> None:
    top, run = running(spec("a", retries=1))
    hand_over(top, "ben")  # notes the first heartbeat
    for seq in range(2, 12):
        top.say("a", "running", seq)
        let_pass(top, 10)
    ask(top, run, CommandKind.CANCEL)  # commits the attempt with the number of its last heartbeat
    hand_over(top, "cid")  # 71 s after that heartbeat was first seen
    assert [str(each.status) for each in attempts(top, run)] == ["running"]
    let_pass(top, STALE + FENCE + 5)
    assert [str(each.status) for each in attempts(top, run)] == ["cancelled"]


def test_on_unreachable_fail_makes_no_further_attempt() -> None:
    top, run = running(spec("a", retries=3, on_unreachable=OnUnreachable.FAIL))
    let_pass(top, STALE + FENCE + 10)
    assert [str(each.status) for each in attempts(top, run)] == ["lost"]
    assert top.run(run).status is RunStatus.FAILED


def test_on_unreachable_wait_waits_until_its_machine_answers() -> None:
    top, run = running(spec("a", retries=1, on_unreachable=OnUnreachable.WAIT))
    let_pass(top, 10 * (STALE + FENCE), by=30)
    assert [str(each.status) for each in attempts(top, run)] == ["running"]
    top.executor.is_reachable = True
    top.die("a")
    top.step(4)
    assert [str(each.status) for each in attempts(top, run)] == ["lost", "dispatched"]


def test_what_no_worker_fences_is_waited_for_until_a_person_declares_it_dead() -> None:
    top, run = running(spec("a", retries=1))
    top.executor.traits = ExecutorTraits()
    let_pass(top, 10 * (STALE + FENCE), by=30)
    assert len(attempts(top, run)) == 1
    ask(top, run, CommandKind.DECLARE_DEAD, "a")
    top.step(2)
    first, second = attempts(top, run)
    assert (str(first.status), str(second.status)) == ("lost", "dispatched")
    assert first.failure is not None
    assert first.failure.message.startswith("declared dead by ann; its worker was silent for 60 s")


def test_a_worker_that_keeps_its_own_time_is_over_after_its_timeout() -> None:
    top, run = running(spec("a", retries=1, timeout=100.0))
    top.executor.traits = ExecutorTraits()
    let_pass(top, 100 + STALE)
    assert len(attempts(top, run)) == 1
    let_pass(top, 20)
    assert len(attempts(top, run)) == 2


def test_a_plain_container_has_nobody_who_keeps_its_time() -> None:
    plain = TaskSpec("a", "process", Container(()), retries=1, timeout=100.0)
    top, run = running(plain)
    top.executor.traits = ExecutorTraits()
    let_pass(top, 1000, by=30)
    assert len(attempts(top, run)) == 1


@pytest.mark.parametrize("is_alive", [True, False])
def test_what_is_not_given_up_cannot_be_declared_dead(is_alive: bool) -> None:
    top, run = running(spec("a", retries=1))
    top.executor.is_reachable = is_alive
    ask(top, run, CommandKind.DECLARE_DEAD, "a")
    let_pass(top, 10)
    (only,) = attempts(top, run)
    assert (str(only.status), only.closing) == ("running", None)
    assert top.do(top.store.pending_commands(run)) == ()


def test_what_answers_again_is_stopped_although_it_was_declared_dead() -> None:
    top, run = running(spec("a", retries=1, on_unreachable=OnUnreachable.WAIT))
    let_pass(top, STALE + 10)
    top.executor.is_reachable = True
    ask(top, run, CommandKind.DECLARE_DEAD, "a")
    let_pass(top, 30)
    assert [str(each.status) for each in attempts(top, run)] == ["running"]
    assert top.order("a").attempt.key in top.executor.stopped


def test_a_cancel_ends_in_bounded_time_where_the_worker_fences_itself() -> None:
    top, run = running(spec("a"))
    ask(top, run, CommandKind.CANCEL)
    assert top.run(run).status is RunStatus.RUNNING
    let_pass(top, STALE + FENCE + 5)
    assert top.run(run).status is RunStatus.CANCELLED
    assert [str(each.status) for each in attempts(top, run)] == ["cancelled"]


def test_a_cancelled_attempt_that_is_declared_dead_is_cancelled() -> None:
    top, run = running(spec("a", retries=1, on_unreachable=OnUnreachable.WAIT))
    ask(top, run, CommandKind.CANCEL)
    let_pass(top, 1000, by=30)
    assert top.run(run).status is RunStatus.RUNNING
    ask(top, run, CommandKind.DECLARE_DEAD, "a")
    top.step(2)
    assert top.run(run).status is RunStatus.CANCELLED


def test_an_attempt_that_never_spoke_is_waited_for_from_when_its_gate_was_found_won() -> None:
    top = BenchTop(workflow(spec("a", retries=1)))
    run = top.create()
    top.step(2)
    top.executor.is_reachable = False
    let_pass(top, 290)
    top.win_gate("a")  # nobody knows: its worker may have begun just now
    let_pass(top, STALE + FENCE - 5)
    assert len(attempts(top, run)) == 1
    let_pass(top, 20)
    assert len(attempts(top, run)) == 2


def hand_over(top: BenchTop, id: str) -> None:
    """The scheduler dies; another one takes its run over."""
    top.clock.advance(61)
    top.scheduler = top.new_scheduler(id)
    top.step(2)


def test_silence_is_judged_across_owners() -> None:
    """Each lives too briefly to see it through: together they give the attempt up as one would."""
    top, run = running(spec("a", retries=1))
    for id in ("ben", "cid", "dan"):
        hand_over(top, id)
    assert [str(each.status) for each in attempts(top, run)] == ["lost", "dispatched"]


def test_owners_who_see_new_heartbeats_give_nothing_up() -> None:
    top, run = running(spec("a", retries=1))
    for seq, id in enumerate(("ben", "cid", "dan"), 2):
        top.say("a", "running", seq)
        hand_over(top, id)
    assert [str(each.status) for each in attempts(top, run)] == ["running"]


def test_a_clean_stop_leaves_behind_since_when_each_worker_is_silent() -> None:
    top, run = running(spec("a", retries=1))
    let_pass(top, 20)
    top.do(top.scheduler.stop())
    top.clock.advance(STALE + FENCE - 20)
    top.scheduler = top.new_scheduler("ben")
    top.step(4)
    assert [str(each.status) for each in attempts(top, run)] == ["lost", "dispatched"]


def test_a_scheduler_that_lives_on_writes_nothing_for_the_heartbeats_of_healthy_workers() -> None:
    top, _ = running(spec("a"))
    top.executor.is_reachable = True
    top.step(2)
    noted: list[object] = []
    keep = top.store.note_heartbeats
    top.store.note_heartbeats = lambda heartbeats: noted.append(heartbeats) or keep(heartbeats)  # type: ignore[method-assign, func-returns-value]
    for seq in range(2, 30):
        top.clock.advance(10)
        top.say("a", "running", seq)
        top.step(2)
    assert noted == []
    let_pass(top, STALE / 2 + 5)
    assert len(noted) == 1


def test_an_executor_that_this_scheduler_does_not_have_cannot_be_asked() -> None:
    top, run = running(spec("a", retries=0))
    for id in ("ben",):
        top.clock.advance(61)
        top.scheduler = top.new_scheduler(id)
        top.scheduler._observer._executors = {}  # type: ignore[assignment]
        top.step(2)
    let_pass(top, 1000, by=30)
    assert [str(each.status) for each in attempts(top, run)] == ["running"]
    ask(top, run, CommandKind.DECLARE_DEAD, "a")
    top.step(2)
    assert [str(each.status) for each in attempts(top, run)] == ["lost"]

from __future__ import annotations

import pytest

from ork.core import events as ev
from ork.core.effects import Alert, Stop
from ork.core.limits import Capacity
from ork.core.machine import RunMachine
from ork.model.ids import TaskKey
from ork.model.record import replaced
from ork.model.run import CommandKind, RunCommand, RunStatus
from ork.model.task import Failure, FailureKind, GiveUp, TaskStatus
from ork.model.workflow import RetryOn, RunIf

from .flows import START, Play, exited, spec, workflow

LOST = Failure(FailureKind.LOST, "silent")
CANCELLED = Failure(FailureKind.CANCELLED, "cancelled by ann")


def test_creating_a_run_starts_it_and_writes_all_its_tasks_at_once() -> None:
    play = Play(workflow(spec("a"), spec("b", "a")))
    assert play.run.status is RunStatus.RUNNING
    assert play.statuses() == {"a": "pending", "b": "pending"}


def test_tasks_run_in_the_order_of_their_dependencies() -> None:
    play = Play(workflow(spec("a"), spec("b", "a"), spec("c", "b")))
    assert play.launch() == ["a"]
    play.succeed("a")
    assert play.launch() == ["b"]
    play.succeed("b")
    assert play.launch() == ["c"]
    play.succeed("c")
    assert play.run.status is RunStatus.SUCCESS
    assert play.machine.is_idle


def test_independent_tasks_are_offered_together_by_priority_then_as_written() -> None:
    play = Play(workflow(spec("late", priority=-1), spec("x"), spec("y"), spec("first", priority=5)))
    assert play.launch() == ["first", "x", "y", "late"]


def test_a_launch_that_was_not_admitted_stays_ready() -> None:
    play = Play(workflow(spec("a"), spec("b")))
    launches = play.machine.offer(10, lambda key, _spec, _group: (str(key), "h"), play.now)
    assert len(launches) == 2
    play.machine.settle(frozenset([launches[1].attempt.key]))
    assert play.machine.tasks[TaskKey("a")].status is TaskStatus.PENDING
    assert play.machine.tasks[TaskKey("b")].status is TaskStatus.DISPATCHED
    assert play.launch() == ["a"]


def test_tasks_waiting_for_a_full_pool_do_not_delay_others() -> None:
    play = Play(workflow(spec("p1", pool="api", priority=9), spec("p2", pool="api", priority=9), spec("free")))
    assert play.launch(full=("pool:api",)) == ["free"]
    capacity = Capacity()
    capacity.exhaust(["pool:api"])
    assert not play.machine.has_ready(capacity)
    assert play.launch() == ["p1", "p2"]


def test_retries_two_means_at_most_three_executions() -> None:
    play = Play(workflow(spec("a", retries=2, retry_delay=1.0)))
    for _ in range(2):
        assert play.launch() == ["a"]
        play.fail("a")
        assert play.status("a") == "pending"
        assert play.launch() == []
        play.wait(1)
    assert play.launch() == ["a"]
    play.fail("a")
    assert play.status("a") == "failed"
    assert play.rows[TaskKey("a")].attempt == 3
    assert play.run.status is RunStatus.FAILED


def test_a_failed_task_and_its_run_raise_one_alert_each() -> None:
    play = Play(workflow(spec("a", retries=1, retry_delay=0.0)))
    play.launch()
    play.fail("a")
    play.wait(0)
    play.launch()
    play.fail("a")
    assert [e.task for e in play.effects if isinstance(e, Alert)] == [TaskKey("a"), None]


def test_a_timeout_is_not_retried_by_default() -> None:
    timeout = Failure(FailureKind.TIMEOUT, "timed out after 1 s")
    play = Play(workflow(spec("a", retries=3), spec("b", retries=1, retry_on=frozenset({RetryOn.TIMEOUT}))))
    play.launch()
    play.fail("a", timeout)
    play.fail("b", timeout)
    assert play.status("a") == "failed"
    assert play.status("b") == "pending"


def test_a_failure_with_retry_false_is_not_retried() -> None:
    play = Play(workflow(spec("a", retries=3)))
    play.launch()
    play.fail("a", Failure(FailureKind.EXCEPTION, "TaskError: bad key", {"retry": False}))
    assert play.status("a") == "failed"


def test_a_lost_worker_is_followed_by_the_next_attempt_without_delay() -> None:
    play = Play(workflow(spec("a", retries=1)))
    play.launch()
    play.give_up("a", GiveUp.VANISHED, LOST)
    play.close("a")
    play.wait(0)
    assert play.launch() == ["a"]
    assert play.rows[TaskKey("a")].attempt == 2


def test_downstream_tasks_of_a_failure_are_skipped_with_the_root_cause() -> None:
    play = Play(workflow(spec("a"), spec("slow"), spec("b", "a", "slow"), spec("c", "b"), spec("d", "c", "a")))
    play.launch()
    play.fail("a")
    assert play.statuses() == {"a": "failed", "slow": "dispatched", "b": "skipped", "c": "skipped", "d": "skipped"}
    assert {str(play.rows[TaskKey(n)].cause) for n in "bcd"} == {"a"}
    assert play.rows[TaskKey("c")].reason == "a failed"
    assert play.run.status is RunStatus.RUNNING
    play.succeed("slow")
    assert play.run.status is RunStatus.FAILED
    assert play.run.error == "task `a` failed: exit code 1"


def test_an_independent_branch_finishes_after_a_failure() -> None:
    play = Play(workflow(spec("a"), spec("b"), spec("c", "b")))
    play.launch()
    play.fail("a")
    play.succeed("b")
    assert play.launch() == ["c"]
    play.succeed("c")
    assert play.run.status is RunStatus.FAILED


def test_fail_fast_stops_running_and_skips_waiting_tasks_except_cleanup() -> None:
    flow = workflow(spec("a"), spec("b"), spec("c", "b"), spec("clean", "a", "b", run_if=RunIf.ALWAYS), fail_fast=True)
    play = Play(flow)
    play.launch()
    play.fail("a")
    assert play.status("c") == "skipped"
    assert [e.why for e in play.effects if isinstance(e, Stop)] == [GiveUp.CANCEL]
    play.close("b")
    assert play.status("b") == "cancelled"
    assert play.launch() == ["clean"]
    play.succeed("clean")
    assert play.run.status is RunStatus.FAILED


@pytest.mark.parametrize(
    ("rule", "above", "expected"),
    [
        (RunIf.ALL_SUCCESS, ("ok", "ok"), "ready"),
        (RunIf.ALL_SUCCESS, ("ok", "bad"), "skipped"),
        (RunIf.ALL_DONE, ("bad", "bad"), "ready"),
        (RunIf.ALWAYS, ("bad", "ok"), "ready"),
        (RunIf.ANY_FAILED, ("ok", "bad"), "ready"),
        (RunIf.ANY_FAILED, ("ok", "ok"), "skipped"),
        (RunIf.ANY_SUCCESS, ("ok", "bad"), "ready"),
        (RunIf.ANY_SUCCESS, ("bad", "bad"), "skipped"),
    ],
)
def test_run_if_is_evaluated_when_all_upstream_tasks_have_ended(
    rule: RunIf, above: tuple[str, str], expected: str
) -> None:
    play = Play(workflow(spec("x"), spec("y"), spec("z", "x", "y", run_if=rule)))
    play.launch()
    for name, how in zip("xy", above, strict=True):
        play.succeed(name) if how == "ok" else play.fail(name)
    if expected == "ready":
        assert play.launch() == ["z"]
    else:
        assert play.status("z") == "skipped"


def test_any_failed_sees_a_failure_through_skipped_tasks() -> None:
    play = Play(workflow(spec("a"), spec("b", "a"), spec("notify", "b", run_if=RunIf.ANY_FAILED)))
    play.launch()
    play.fail("a")
    assert play.launch() == ["notify"]


# ── giving up ────────────────────────────────────────────────────────────────────────────────────


def test_an_attempt_being_ended_is_not_retried_until_it_is_closed() -> None:
    play = Play(workflow(spec("a", retries=1)))
    play.launch()
    play.give_up("a", GiveUp.STALE, LOST)
    assert [e.why for e in play.effects if isinstance(e, Stop)] == [GiveUp.STALE]
    play.wait(3600)
    assert play.launch() == []
    play.close("a")
    play.wait(0)
    assert play.launch() == ["a"]


def test_a_late_success_takes_precedence_over_giving_up() -> None:
    play = Play(workflow(spec("a")))
    play.launch()
    play.give_up("a", GiveUp.STALE, LOST)
    play.succeed("a", "42")
    assert play.status("a") == "success"
    assert play.run.status is RunStatus.SUCCESS


def test_an_event_about_an_older_attempt_is_ignored() -> None:
    play = Play(workflow(spec("a", retries=1, retry_delay=0.0)))
    play.launch()
    play.fail("a")
    play.wait(0)
    play.launch()
    before = dict(play.rows)
    play.feed(ev.Succeeded(TaskKey("a"), 1, 99, None, play.now, play.now))
    assert play.rows == before
    assert play.machine.ignored == 1


def test_a_repeated_end_is_ignored() -> None:
    play = Play(workflow(spec("a"), spec("b", "a")))
    play.launch()
    play.succeed("a")
    before = dict(play.rows)
    play.feed(
        ev.Succeeded(TaskKey("a"), 1, 9, None, play.now, play.now),
        ev.Failed(TaskKey("a"), 1, 10, exited(), None, play.now),
    )
    assert play.rows == before


# ── commands ─────────────────────────────────────────────────────────────────────────────────────


def test_cancel_ends_waiting_stops_running_and_keeps_successful_tasks() -> None:
    play = Play(workflow(spec("a"), spec("b"), spec("c", "b")))
    play.launch()
    play.succeed("a")
    play.command(CommandKind.CANCEL)
    assert play.statuses() == {"a": "success", "b": "dispatched", "c": "cancelled"}
    assert play.run.status is RunStatus.RUNNING
    play.close("b")
    assert play.status("b") == "cancelled"
    assert play.run.status is RunStatus.CANCELLED


def test_a_task_that_succeeds_while_its_run_is_cancelled_keeps_its_success_and_the_run_is_cancelled() -> None:
    play = Play(workflow(spec("a")))
    play.launch()
    play.command(CommandKind.CANCEL)
    play.succeed("a")
    assert play.status("a") == "success"
    assert play.run.status is RunStatus.CANCELLED


def test_a_cancelled_attempt_that_reports_a_failure_is_cancelled_and_not_retried() -> None:
    play = Play(workflow(spec("a", retries=5)))
    play.launch()
    play.command(CommandKind.CANCEL)
    play.fail("a")
    assert play.status("a") == "cancelled"


def test_a_paused_run_starts_no_tasks_and_running_ones_may_end() -> None:
    play = Play(workflow(spec("a"), spec("b", "a")))
    play.launch()
    play.command(CommandKind.PAUSE)
    assert not play.machine.is_idle
    play.succeed("a")
    assert play.launch() == []
    assert play.machine.is_idle
    play.rebuild()
    play.command(CommandKind.RESUME)
    assert play.launch() == ["b"]


def test_retrying_a_run_repeats_unsuccessful_tasks_and_continues_attempt_numbers() -> None:
    play = Play(workflow(spec("a"), spec("b", "a", retries=1, retry_delay=0.0), spec("c", "b")))
    play.launch()
    play.succeed("a")
    for _ in range(2):
        play.wait(0)
        play.launch()
        play.fail("b")
    assert play.run.status is RunStatus.FAILED
    play.rebuild()
    play.command(CommandKind.RETRY)
    assert play.run.status is RunStatus.RUNNING
    assert play.run.round == 2
    assert play.launch() == ["b"]
    assert play.rows[TaskKey("b")].attempt == 3
    play.fail("b")
    assert play.status("b") == "pending", "a retry by a person begins with a fresh budget"
    play.wait(0)
    play.launch()
    play.succeed("b")
    assert play.launch() == ["c"]


def test_retrying_one_task_repeats_it_and_its_downstream_tasks() -> None:
    play = Play(workflow(spec("a"), spec("b", "a"), spec("c", "b"), spec("other")))
    for _ in range(3):
        for name in play.launch():
            play.succeed(name)
    assert play.run.status is RunStatus.SUCCESS
    play.command(CommandKind.RETRY, task="b")
    assert play.statuses() == {"a": "success", "b": "pending", "c": "pending", "other": "success"}
    assert play.launch() == ["b"]


def test_a_cancelled_run_stays_cancelled_until_all_its_cancelled_tasks_are_retried() -> None:
    play = Play(workflow(spec("a"), spec("b")))
    play.command(CommandKind.CANCEL)
    assert play.run.status is RunStatus.CANCELLED
    for task in ("a", "b"):
        play.command(CommandKind.RETRY, task=task)
        assert play.launch() == [task]
        play.succeed(task)
        assert play.run.status is (RunStatus.CANCELLED if task == "a" else RunStatus.SUCCESS)


def test_retrying_a_task_whose_upstream_failed_skips_it_again() -> None:
    play = Play(workflow(spec("a"), spec("b", "a"), spec("c", "b")))
    play.launch()
    play.fail("a")
    play.command(CommandKind.RETRY, task="b")
    assert play.statuses() == {"a": "failed", "b": "skipped", "c": "skipped"}
    assert play.run.status is RunStatus.FAILED


def test_a_command_that_no_longer_applies_changes_nothing() -> None:
    play = Play(workflow(spec("a")))
    play.launch()
    play.succeed("a")
    before = play.run
    play.command(CommandKind.CANCEL)
    play.command(CommandKind.RESUME)
    assert play.run == before


def test_a_run_quarantined_before_its_start_starts_when_resumed() -> None:
    flow = workflow(spec("a"))
    aside = replaced(Play(flow).run, status=RunStatus.PAUSED, started_at=None)
    machine = RunMachine(flow, aside)
    machine.handle(ev.Commanded(RunCommand(aside.id, CommandKind.RESUME, "ann")), START)
    assert (machine.run.status, machine.run.started_at) == (RunStatus.RUNNING, START)

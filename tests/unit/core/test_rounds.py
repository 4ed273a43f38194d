"""Fan-outs over several rounds of a run, and while everything is being ended."""

from __future__ import annotations

from ork.core import events as ev
from ork.core.events import CacheAnswer
from ork.core.prepare import CACHE, NoSuchPath, Question
from ork.model.ids import TaskKey
from ork.model.run import CommandKind
from ork.model.task import InlineOutput, StoredOutput
from ork.model.workflow import Condition, Const, Op, Ref, RunIf

from .flows import Play, spec, workflow

TWO = Const(["a", "b"])


def answer(play: Play, found: object) -> Question:
    (question,) = play.machine.take_questions()
    play.feed(ev.Answered(question, found))
    return question


def test_nothing_fans_out_while_a_run_is_being_cancelled() -> None:
    play = Play(workflow(spec("a"), spec("each", "a", foreach=TWO, run_if=RunIf.ALWAYS)))
    play.command(CommandKind.CANCEL)
    assert play.statuses() == {"a": "cancelled", "each": "cancelled"}
    assert str(play.run.status) == "cancelled"


def test_a_fan_out_that_was_cancelled_before_it_ran_fans_out_again_and_ends() -> None:
    play = Play(workflow(spec("each", foreach=TWO)))
    play.command(CommandKind.CANCEL)
    play.command(CommandKind.RETRY)
    assert play.launch() == ["each[0]", "each[1]"]
    play.succeed("each[0]")
    play.succeed("each[1]")
    assert str(play.run.status) == "success"


def test_instances_of_an_earlier_round_end_with_a_task_that_is_skipped_in_this_one() -> None:
    play = Play(workflow(spec("a"), spec("each", "a", foreach=TWO)))
    play.launch()
    play.succeed("a")
    play.launch()
    play.succeed("each[0]")
    play.succeed("each[1]")
    play.command(CommandKind.RETRY, everything=True)
    play.launch()
    play.fail("a")
    assert play.statuses() == {"a": "failed", "each": "skipped", "each[0]": "skipped", "each[1]": "skipped"}
    assert str(play.run.status) == "failed"


def failed_in_part() -> Play:
    """What is above the fan-out and one of its instances have failed, and are to be tried again."""
    play = Play(workflow(spec("a"), spec("each", "a", foreach=TWO, run_if=RunIf.ALL_DONE)))
    play.launch()
    play.fail("a")
    play.launch()
    play.succeed("each[0]", "1")
    play.fail("each[1]")
    play.command(CommandKind.RETRY)
    return play


def test_a_fan_out_that_failed_in_part_waits_again_for_what_is_above_it() -> None:
    play = failed_in_part()
    assert play.launch() == ["a"]
    assert play.rebuild().tasks[TaskKey("each")].status == "pending"
    play.succeed("a")
    assert play.launch() == ["each[1]"]
    play.succeed("each[1]", "2")
    assert play.rows[TaskKey("each", 0)].output == InlineOutput("1")
    assert str(play.run.status) == "success"


def test_a_missing_path_in_a_stored_value_counts_as_a_missing_value() -> None:
    ghost = Condition(Ref(("tasks", "a", "output", "ghost")), Op.EXISTS, False)
    play = Play(workflow(spec("a"), spec("b", "a", when=(ghost,))))
    play.launch()
    play.feed(ev.Succeeded(TaskKey("a"), 1, 5, StoredOutput("big", 10**6), play.now, play.now))
    answer(play, NoSuchPath("there is no `ghost`"))
    assert play.launch() == ["b"]


def test_foreach_over_a_missing_path_fails_the_task() -> None:
    play = Play(workflow(spec("a"), spec("each", "a", foreach=Ref(("tasks", "a", "output", "ghost")))))
    play.launch()
    play.feed(ev.Succeeded(TaskKey("a"), 1, 5, StoredOutput("big", 10**6), play.now, play.now))
    answer(play, NoSuchPath("there is no `ghost`"))
    failure = play.rows[TaskKey("each")].failure
    assert failure is not None
    assert (str(failure.kind), failure.message) == ("input", "there is no `ghost`")


def test_a_retry_served_from_the_cache_clears_the_failure() -> None:
    play = Play(workflow(spec("a", cache=60.0, retries=1, retry_delay=5.0)))
    answer(play, CacheAnswer("key"))
    play.launch()
    play.fail("a")
    play.rebuild()
    play.wait(10)
    assert answer(play, CacheAnswer("key", "other", InlineOutput("1"))).about == CACHE
    task = play.rows[TaskKey("a")]
    assert (str(task.status), task.failure, task.exit_code, task.retry_at) == ("success", None, None, None)

from __future__ import annotations

import json

import pytest

from ork.core import events as ev
from ork.core.bind import Gathered
from ork.core.prepare import CACHE, Question, Unanswerable
from ork.model.ids import TaskKey
from ork.model.run import CommandKind, RunStatus
from ork.model.task import InlineOutput, StoredOutput
from ork.model.workflow import Approval, Condition, Const, Op, Ref, RunIf

from .flows import Play, exited, spec, workflow

ITEMS = Ref(("tasks", "list", "output"))


def fan_out(**fields: object) -> Play:
    play = Play(workflow(spec("list"), spec("each", "list", foreach=ITEMS, **fields), spec("sum", "each")))
    play.launch()
    return play


def test_one_instance_for_each_item_in_order_and_the_next_task_gets_all_outputs() -> None:
    play = fan_out()
    play.succeed("list", '["a", "b", "c"]')
    assert play.launch() == ["each[0]", "each[1]", "each[2]"]
    assert [play.rows[TaskKey("each", i)].item for i in range(3)] == ['"a"', '"b"', '"c"']
    assert play.status("each") == "running"
    for index in (2, 0, 1):
        play.succeed(f"each[{index}]", str(index * 10))
    assert play.status("each") == "success"
    assert play.launch() == ["sum"]
    assert play.machine.scope(TaskKey("sum")).upstream("each") == {"value": [0, 10, 20]}


def test_an_empty_list_succeeds_with_an_empty_list() -> None:
    play = fan_out()
    play.succeed("list", "[]")
    assert play.status("each") == "success"
    assert play.rows[TaskKey("each")].output == InlineOutput("[]")
    assert play.launch() == ["sum"]


def test_no_more_instances_than_concurrency_at_once() -> None:
    play = fan_out(concurrency=2)
    play.succeed("list", "[1, 2, 3, 4]")
    assert play.launch() == ["each[0]", "each[1]"]
    play.succeed("each[1]")
    assert play.launch() == ["each[2]"]
    play.succeed("each[0]")
    play.succeed("each[2]")
    assert play.launch() == ["each[3]"]


def test_an_instance_that_waits_for_its_retry_leaves_its_slot_to_others() -> None:
    play = fan_out(concurrency=1, retries=1, retry_delay=5.0)
    play.succeed("list", "[1, 2]")
    assert play.launch() == ["each[0]"]
    play.fail("each[0]")
    assert play.launch() == ["each[1]"]
    play.wait(5)
    assert play.launch() == []
    play.succeed("each[1]")
    assert play.launch() == ["each[0]"]


def test_one_failed_instance_fails_the_task_and_is_named_after_all_have_ended() -> None:
    play = fan_out()
    play.succeed("list", "[1, 2]")
    play.launch()
    play.fail("each[1]")
    assert play.status("each") == "running"
    play.succeed("each[0]")
    assert play.status("each") == "failed"
    assert play.run.error == "task `each` failed: instance 1 failed: exit code 1"
    assert play.status("sum") == "skipped"


def test_parallel_alone_and_together_with_foreach() -> None:
    play = Play(
        workflow(spec("p", parallel=3), spec("both", foreach=Const(["x", "y"]), parallel=2), spec("end", "both"))
    )
    assert play.launch() == ["p[0]", "p[1]", "p[2]", "both[0]", "both[1]", "both[2]", "both[3]"]
    assert (play.machine.position(TaskKey("p", 2)).index, play.machine.position(TaskKey("p", 2)).count) == (2, 3)
    assert [play.rows[TaskKey("both", i)].item for i in range(4)] == ['"x"', '"x"', '"y"', '"y"']
    positions = [play.machine.position(TaskKey("both", i)) for i in range(4)]
    assert [(position.index, position.count) for position in positions] == [(0, 2), (1, 2), (0, 2), (1, 2)]
    for index in range(4):
        play.succeed(f"both[{index}]", str(index))
    assert play.machine.scope(TaskKey("end")).upstream("both") == {"value": [[0, 1], [2, 3]]}
    ref = Ref(("tasks", "both", "output", 1, 0))
    assert play.machine.scope(TaskKey("end")).bind(ref) == {"value": 2}


@pytest.mark.parametrize("output", ['{"a": 1}', "7", '"text"', None])
def test_foreach_over_a_value_that_is_no_list_fails_the_task(output: str | None) -> None:
    play = fan_out()
    play.succeed("list", output)
    assert play.status("each") == "failed"
    assert "foreach needs a list" in str(play.run.error)


def test_a_list_too_large_for_the_store_is_asked_for() -> None:
    play = fan_out()
    key = TaskKey("list")
    play.feed(ev.Succeeded(key, 1, 5, StoredOutput("runs/r/list/0/1/output.json", 10**6), play.now, play.now))
    (question,) = play.machine.take_questions()
    assert question.bound == {"object": "runs/r/list/0/1/output.json", "path": []}
    play.feed(ev.Answered(question, ["x", "y"]))
    assert play.launch() == ["each[0]", "each[1]"]


def test_an_unanswerable_question_fails_the_task() -> None:
    play = fan_out()
    play.feed(ev.Succeeded(TaskKey("list"), 1, 5, StoredOutput("k", 1), play.now, play.now))
    (question,) = play.machine.take_questions()
    play.feed(ev.Answered(question, Unanswerable("the output is gone")))
    assert play.status("each") == "failed"


def test_a_rebuilt_machine_asks_again_and_continues_with_its_instances() -> None:
    play = fan_out(concurrency=2)
    play.feed(ev.Succeeded(TaskKey("list"), 1, 5, StoredOutput("k", 1), play.now, play.now))
    assert len(play.machine.take_questions()) == 1
    (question,) = play.rebuild().take_questions()
    play.feed(ev.Answered(question, [1, 2, 3]))
    play.launch()
    play.succeed("each[0]")
    play.rebuild()
    assert play.launch() == ["each[2]"]
    play.succeed("each[1]")
    play.succeed("each[2]")
    assert play.status("each") == "success"


def test_retrying_a_run_runs_again_only_the_instances_that_failed() -> None:
    play = fan_out()
    play.succeed("list", "[1, 2, 3]")
    play.launch()
    play.succeed("each[0]", "1")
    play.fail("each[1]")
    play.succeed("each[2]", "3")
    play.rebuild()
    play.command(CommandKind.RETRY)
    assert play.launch() == ["each[1]"]
    assert play.rows[TaskKey("each", 1)].attempt == 2
    play.succeed("each[1]", "2")
    assert play.machine.output_of("each") == Gathered((InlineOutput("1"), InlineOutput("2"), InlineOutput("3")))
    assert play.launch() == ["sum"]


def test_retrying_one_instance_by_name() -> None:
    play = fan_out()
    play.succeed("list", "[1, 2]")
    for name in play.launch():
        play.succeed(name)
    play.launch()
    play.succeed("sum")
    play.command(CommandKind.RETRY, task="each[1]")
    assert play.launch() == ["each[1]"]
    play.succeed("each[1]")
    assert play.launch() == ["sum"]


def test_retrying_the_upstream_task_computes_the_fan_out_again() -> None:
    play = fan_out()
    play.succeed("list", "[1, 2, 3]")
    for name in play.launch():
        play.succeed(name)
    play.launch()
    play.succeed("sum")
    play.command(CommandKind.RETRY, task="list")
    play.launch()
    play.succeed("list", "[9]")
    assert play.launch() == ["each[0]"]
    assert play.rows[TaskKey("each", 0)].item == "9"
    assert [play.status(f"each[{i}]") for i in (1, 2)] == ["skipped", "skipped"]
    play.succeed("each[0]", "81")
    assert play.launch() == ["sum"]
    play.succeed("sum")
    assert play.run.status is RunStatus.SUCCESS


def test_cancel_ends_all_instances_and_the_task() -> None:
    play = fan_out(concurrency=1)
    play.succeed("list", "[1, 2, 3]")
    play.launch()
    play.command(CommandKind.CANCEL)
    play.close("each[0]")
    assert play.statuses() == {
        "list": "success",
        "each": "cancelled",
        "each[0]": "cancelled",
        "each[1]": "cancelled",
        "each[2]": "cancelled",
        "sum": "cancelled",
    }
    assert play.run.status is RunStatus.CANCELLED


def test_fail_fast_ends_a_fan_out_at_its_first_failure() -> None:
    play = Play(workflow(spec("each", foreach=Const([1, 2, 3]), concurrency=1), fail_fast=True))
    play.launch()
    play.fail("each[0]")
    assert play.run.status is RunStatus.FAILED
    assert play.status("each") == "failed"
    assert play.launch() == []


@pytest.mark.slow
def test_ten_thousand_instances_cost_what_ten_thousand_events_cost() -> None:
    play = Play(workflow(spec("each", foreach=Const(list(range(10_000)))), spec("sum", "each")))
    assert len(play.launch(limit=20_000)) == 10_000
    for index in range(10_000):
        play.machine.handle(ev.Succeeded(TaskKey("each", index), 1, 5, None, play.now, play.now), play.now)
        decided = play.machine.take()
        assert len(decided.tasks) <= 2
    assert play.launch() == ["sum"]


def test_a_chain_of_empty_fan_outs_does_not_recurse() -> None:
    chain = [spec("t0")] + [
        spec(f"t{i}", f"t{i - 1}", foreach=Ref(("tasks", f"t{i - 1}", "output"))) for i in range(1, 3000)
    ]
    play = Play(workflow(*chain))
    play.launch()
    play.succeed("t0", "[]")
    assert play.run.status is RunStatus.SUCCESS


# ── conditions ───────────────────────────────────────────────────────────────────────────────────


def when(op: Op, value: object, path: tuple[str | int, ...] = ("n",)) -> tuple[Condition, ...]:
    return (Condition(Ref(("tasks", "a", "output", *path)), op, value),)


@pytest.mark.parametrize(
    ("op", "value", "runs"),
    [
        (Op.EQUALS, 5, True),
        (Op.EQUALS, 6, False),
        (Op.NOT_EQUALS, 6, True),
        (Op.LT, 6, True),
        (Op.LE, 5, True),
        (Op.GT, 5, False),
        (Op.GE, 5, True),
        (Op.IN, [4, 5], True),
        (Op.IN, [4], False),
        (Op.EXISTS, True, True),
        (Op.EXISTS, False, False),
    ],
)
def test_a_condition_decides_whether_a_task_runs(op: Op, value: object, runs: bool) -> None:
    play = Play(workflow(spec("a"), spec("b", "a", when=when(op, value))))
    play.launch()
    play.succeed("a", '{"n": 5}')
    assert play.launch() == (["b"] if runs else [])
    if not runs:
        assert play.status("b") == "skipped"
        assert play.run.status is RunStatus.SUCCESS, "skipped by a condition is not a failure"
        assert str(play.rows[TaskKey("b")].reason).startswith("when tasks.a.output.n")


def test_tasks_downstream_of_a_skip_are_skipped_unless_run_if_is_all_done() -> None:
    play = Play(
        workflow(
            spec("a"),
            spec("left", "a", when=when(Op.GT, 9)),
            spec("right", "a"),
            spec("under", "left"),
            spec("join", "under", "right", run_if=RunIf.ALL_DONE),
        )
    )
    play.launch()
    play.succeed("a", '{"n": 5}')
    assert play.status("under") == "skipped"
    play.launch()
    play.succeed("right", "1")
    assert play.launch() == ["join"]
    assert play.machine.scope(TaskKey("join")).upstream("under") == {"missing": True}


def test_values_that_cannot_be_compared_fail_the_task() -> None:
    play = Play(workflow(spec("a"), spec("b", "a", when=when(Op.GT, 3))))
    play.launch()
    play.succeed("a", '{"n": "five"}')
    assert play.status("b") == "failed"
    assert "cannot compare" in str(play.run.error)


# ── waiting for a person ─────────────────────────────────────────────────────────────────────────


def approval(**fields: object) -> Play:
    from ork.model.record import replaced

    ask = replaced(spec("ok", "a", **fields), action=Approval("Ship it?"), executor="approval")
    play = Play(workflow(spec("a"), ask, spec("ship", "ok")))
    play.launch()
    play.succeed("a")
    return play


def test_an_approval_waits_without_an_attempt_and_records_who_decided() -> None:
    play = approval()
    assert play.launch() == []
    assert play.status("ok") == "running"
    assert not play.machine.active
    play.rebuild()
    play.command(CommandKind.APPROVE, task="ok", comment="fine")
    assert play.status("ok") == "success"
    decided = json.loads(play.rows[TaskKey("ok")].output.json)  # type: ignore[union-attr]
    assert (decided["approved"], decided["by"], decided["comment"]) == (True, "ann", "fine")
    assert play.launch() == ["ship"]


def test_a_rejection_fails_the_task_and_is_not_retried() -> None:
    play = approval(retries=5)
    play.command(CommandKind.REJECT, task="ok")
    assert play.status("ok") == "failed"
    assert play.run.error == "task `ok` failed: rejected by ann"


def test_an_approval_without_a_decision_in_time_times_out() -> None:
    play = approval(timeout=60.0)
    play.rebuild()
    assert play.machine.next_timer is not None
    play.wait(59)
    assert play.status("ok") == "running"
    play.wait(1)
    assert play.status("ok") == "failed"


def test_approving_a_task_that_is_not_waiting_changes_nothing() -> None:
    play = approval()
    play.command(CommandKind.APPROVE, task="a")
    play.command(CommandKind.APPROVE, task="nobody")
    assert play.machine.ignored == 2
    play.command(CommandKind.CANCEL)
    assert play.status("ok") == "cancelled"


# ── cache and deferral ───────────────────────────────────────────────────────────────────────────


def test_the_cache_is_asked_once_per_task() -> None:
    play = Play(workflow(spec("a", cache=60.0), spec("b", "a")))
    assert play.launch() == []
    (question,) = play.machine.take_questions()
    assert question == Question(TaskKey("a"), CACHE)
    play.feed(ev.Answered(question, ev.CacheAnswer("k1", "run0", InlineOutput("7"))))
    assert play.status("a") == "success"
    assert "run0" in str(play.rows[TaskKey("a")].reason)
    assert play.launch() == ["b"]


def test_a_task_that_is_not_cached_runs_and_remembers_its_key() -> None:
    play = Play(workflow(spec("a", cache=60.0)))
    (question,) = play.machine.take_questions()
    play.feed(ev.Answered(question, ev.CacheAnswer("k1")))
    assert play.launch() == ["a"]
    play.succeed("a")
    assert play.rows[TaskKey("a")].cache_key == "k1"


def test_a_cached_result_is_not_a_source_for_other_tasks() -> None:
    play = Play(workflow(spec("a", cache=60.0)))
    (question,) = play.machine.take_questions()
    play.feed(ev.Answered(question, ev.CacheAnswer("k1")))
    play.rebuild()
    (question,) = play.machine.take_questions()
    play.feed(ev.Answered(question, ev.CacheAnswer("k1", "run0", InlineOutput("7"))))
    assert play.status("a") == "success"
    assert play.rows[TaskKey("a")].cache_key is None


def test_a_deferred_attempt_goes_on_until_its_jobs_end() -> None:
    play = Play(workflow(spec("a")))
    play.launch()
    play.feed(ev.AttemptDeferred(TaskKey("a"), 1, 2, "[]"))
    (attempt,) = play.machine.active.values()
    assert attempt.waits_for == "[]"
    assert play.status("a") == "running"
    play.succeed("a", "1")
    assert play.run.status is RunStatus.SUCCESS


def test_a_failure_of_a_deferred_attempt_follows_the_retry_rule() -> None:
    play = Play(workflow(spec("a", retries=1, retry_delay=0.0)))
    play.launch()
    play.feed(ev.AttemptDeferred(TaskKey("a"), 1, 2, "[]"))
    play.fail("a", exited())
    play.wait(0)
    assert play.launch() == ["a"]
    (attempt,) = play.machine.active.values()
    assert attempt.waits_for is None

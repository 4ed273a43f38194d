"""Moments a run waits for: none is lost behind another."""

from __future__ import annotations

from ork.model.run import CommandKind, RunCommand
from ork.model.workflow import Approval, TaskSpec
from tests.unit.core.flows import workflow
from tests.unit.scheduler.bench_top import BenchTop


def approval(name: str, *above: str) -> TaskSpec:
    return TaskSpec(name, "approval", Approval("go on?"), depends_on=above, timeout=100.0)


def test_a_timer_that_comes_to_nothing_does_not_hide_the_next() -> None:
    top = BenchTop(workflow(approval("a"), approval("b", "a")))
    run = top.create()
    top.step()
    top.clock.advance(50)
    top.do(top.store.submit_command(RunCommand(run, CommandKind.APPROVE, task="a"), top.clock.now()))
    top.scheduler.wake()
    top.step()
    top.clock.advance(51)
    top.step()  # the time for `a` is over, and `a` has long been decided
    top.clock.advance(50)
    top.step()
    assert top.statuses(run) == {"a": "success", "b": "failed"}

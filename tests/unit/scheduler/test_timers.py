"""Moments a run waits for: none is lost behind another."""

from __future__ import annotations

import asyncio

from ork.model.run import CommandKind, RunCommand
from ork.model.workflow import Approval, TaskSpec
from ork.scheduler.service import SchedulerService
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


def test_who_sleeps_is_woken_at_the_latest_when_asked_for_however_often_that_is_put_off_or_brought_forward() -> None:
    top = BenchTop(workflow(approval("a")))

    async def sleeps() -> None:
        service = SchedulerService(top.scheduler, top.store)
        now = asyncio.get_running_loop().time()
        for seconds in (30.0, 60.0, 20.0, 40.0):
            service._wake.set()
            await service._sleep_until(now + seconds)
            assert service._alarm is not None
            assert service._alarm.when() <= now + seconds
            service._wake.clear()
        for _ in range(2):  # also after it has rung
            await asyncio.wait_for(service._sleep_until(now + 0.01), 10)
            assert service._alarm is None
            service._wake.clear()

    asyncio.run(sleeps())

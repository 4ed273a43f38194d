"""Schedules on the bench top: fired once, by whoever comes first, and never by polling."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from ork.model.notice import NoticeKind
from ork.model.record import replaced
from ork.model.workflow import Catchup, CompiledWorkflow, Param, Schedule, Trigger
from ork.scheduler.step import Scheduler
from ork.state.records import RunFilter
from ork.telemetry import TelemetryEvent
from ork.testing.clock import EPOCH
from tests.unit.core.flows import spec, workflow

from .bench_top import BenchTop

HOUR = 3600.0


def flow(cron: str = "0 * * * *", name: str = "flow", **options: Any) -> CompiledWorkflow:
    params = options.pop("params", ())
    return replaced(workflow(spec("a")), name=name, schedule=Schedule(cron, **options), params=params)


def slots(top: BenchTop, name: str = "flow") -> list[datetime | None]:
    return sorted(run.scheduled_for for run in top.do(top.store.list_runs(RunFilter(name, limit=500))).runs)


def at(hours: float) -> datetime:
    return EPOCH + timedelta(hours=hours)


def step_with(top: BenchTop, scheduler: Scheduler) -> Any:
    return top.do(scheduler.step(top.clock.now()))


def test_a_schedule_is_planned_when_it_is_first_seen_and_fires_when_due() -> None:
    top = BenchTop(flow())
    assert top.step() == at(1)
    assert slots(top) == []
    top.clock.advance(HOUR)
    top.step()
    assert slots(top) == [at(1)]
    (run,) = top.do(top.store.list_runs(RunFilter())).runs
    assert run.trigger is Trigger.SCHEDULE
    assert [order.attempt.run for order in top.executor.started] == [run.id]


def test_nothing_is_read_while_nothing_is_due() -> None:
    top = BenchTop(*(flow(name=f"flow{n}") for n in range(50)))
    top.step()
    before = top.store.statements
    top.clock.advance(HOUR / 2)
    assert top.step(3) == at(1)
    assert top.store.statements == before


def test_of_several_schedulers_one_fires() -> None:
    top = BenchTop(flow())
    others = [top.new_scheduler(name) for name in ("ben", "cem")]
    for scheduler in (top.scheduler, *others):
        step_with(top, scheduler)
    for hour in range(1, 4):
        top.clock.advance(HOUR)
        for scheduler in (top.scheduler, *others):
            step_with(top, scheduler)
        assert slots(top) == [at(h) for h in range(1, hour + 1)]


def test_a_scheduler_told_of_a_new_schedule_wakes_up_for_it() -> None:
    top = BenchTop(flow())
    top.step()
    sooner = replaced(flow("*/5 * * * *"), description="edited")
    from ork.compile.content import make_version

    top.do(top.store.save_version(make_version(sooner, "/project"), origin=None, now=top.clock.now()))
    top.scheduler.wake()
    assert top.step() == at(5 / 60)


@pytest.mark.parametrize(
    ("catchup", "expected"), [(Catchup.NONE, []), (Catchup.LAST, [at(3)]), (Catchup.ALL, [at(1), at(2), at(3)])]
)
def test_down_for_three_hours(catchup: Catchup, expected: list[datetime]) -> None:
    top = BenchTop(flow(catchup=catchup))
    top.step()
    top.clock.advance(3.4 * HOUR)
    successor = top.new_scheduler("ben")
    assert step_with(top, successor) >= top.clock.now()
    assert slots(top) == expected
    top.clock.advance(0.6 * HOUR)
    step_with(top, successor)
    assert slots(top) == [*expected, at(4)]


def test_times_without_a_run_are_told_of() -> None:
    top = BenchTop(flow(catchup=Catchup.LAST))
    top.step()
    top.clock.advance(3.4 * HOUR)
    top.step()
    (notice,) = top.do(top.store.take_alerts(5, top.clock.now()))
    assert notice.kind is NoticeKind.MISSED
    assert notice.detail == (
        "2 times of the schedule went by without a run, the first at 2026-01-01T01:00:00Z (catchup: last)"
    )
    assert top.scheduler.telemetry.counts[TelemetryEvent.SCHEDULE_MISSED] == 1


def test_a_clock_that_is_set_back_fires_nothing_twice_and_loses_nothing() -> None:
    top = BenchTop(flow(catchup=Catchup.ALL))
    top.step()
    top.clock.advance(2 * HOUR)
    top.step()
    assert slots(top) == [at(1), at(2)]
    top.clock.jump(-1.5 * HOUR)
    top.step()
    assert slots(top) == [at(1), at(2)]
    for _ in range(5):
        top.clock.advance(HOUR / 2)
        top.step()
    assert slots(top) == [at(1), at(2), at(3)]


def test_a_clock_that_ran_far_ahead_and_came_back_does_not_silence_a_schedule() -> None:
    top = BenchTop(flow())
    top.step()
    top.clock.jump(1000 * HOUR)
    top.step()
    assert top.scheduler.next_fire == at(1001)
    top.clock.jump(-1000 * HOUR)
    assert top.step() == at(1)
    top.clock.advance(HOUR)
    top.step()
    assert slots(top) == [at(1)]


def test_a_disabled_workflow_gets_no_runs_and_an_enabled_one_begins_with_its_next_time() -> None:
    top = BenchTop(flow(catchup=Catchup.ALL))
    top.step()
    top.do(top.store.set_enabled("flow", False))
    top.scheduler.wake()
    assert top.step() is None
    top.clock.advance(2.5 * HOUR)
    top.step()
    top.do(top.store.set_enabled("flow", True))
    top.scheduler.wake()
    assert top.step() == at(3)
    assert slots(top) == []


def test_jitter_delays_the_run_and_leaves_its_time_alone() -> None:
    top = BenchTop(flow(jitter=600.0))
    top.clock.advance(600)
    due = top.step()
    assert at(1) < due < at(1) + timedelta(minutes=10)
    top.clock.advance((due - top.clock.now()).total_seconds())
    top.step()
    assert slots(top) == [at(1)]
    assert top.scheduler.next_fire == due + timedelta(hours=1)


def test_a_schedule_this_machine_cannot_read_stops_nobody_else() -> None:
    top = BenchTop(flow(name="strange", timezone="Mars/Olympus"), flow())
    told: list[str] = []
    top.scheduler.telemetry.listen(lambda what, fields: told.append(fields["workflow"]) if "failed" in what else None)
    assert top.step() == at(1)
    top.clock.advance(HOUR)
    top.step()
    assert slots(top) == [at(1)]
    assert set(told) == {"strange"}


def test_a_workflow_whose_params_have_no_defaults_gets_a_notice_instead_of_a_run() -> None:
    top = BenchTop(flow(params=(Param("day"),)))
    top.step()
    top.clock.advance(HOUR)
    top.step()
    assert slots(top) == []
    assert top.scheduler.next_fire == at(2)
    (notice,) = top.do(top.store.take_alerts(5, top.clock.now()))
    assert "param `day` is missing" in (notice.detail or "")


def test_a_scheduler_that_is_not_to_fire_does_not() -> None:
    top = BenchTop(flow(), fires_schedules=False)
    assert top.step() is None
    top.clock.advance(HOUR)
    top.step()
    assert slots(top) == []


def test_queued_runs_wait_for_max_active_runs() -> None:
    top = BenchTop(replaced(flow(catchup=Catchup.ALL), max_active_runs=1))
    top.step()
    top.clock.advance(3.2 * HOUR)
    top.step(3)
    assert slots(top) == [at(1), at(2), at(3)]
    assert len(top.executor.started) == 1
    top.succeed("a")
    top.step(3)
    assert len(top.executor.started) == 2

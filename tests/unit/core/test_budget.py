"""Budgets: what the machine decides when a run costs too much, and when it wants to be woken for that."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ork.core import events as ev
from ork.core.budget import BudgetMeter, BudgetState
from ork.core.cost import estimate
from ork.core.effects import Alert, Stop
from ork.model.ids import AttemptKey, TaskKey
from ork.model.prices import BilledTime
from ork.model.record import replaced
from ork.model.run import CommandKind
from ork.model.task import Attempt, AttemptStatus
from ork.model.workflow import Budget, Const, OnExceed

from .flows import RUN, START, Play, spec, workflow
from .prices import OnePrice, operations

CANCEL, ALERT = Budget(10.0, OnExceed.CANCEL), Budget(10.0)
OVER = Alert(None, None, is_over_budget=True)


def play(budget: Budget = CANCEL, prices: OnePrice | None = None) -> Play:
    return Play(workflow(spec("a"), spec("b", "a"), budget=budget), prices=prices or OnePrice())


def after(seconds: float) -> object:
    return START + timedelta(seconds=seconds)


def test_a_run_is_cancelled_at_the_moment_it_costs_its_budget() -> None:
    run = play()
    assert run.machine.next_timer is None
    run.launch()
    assert run.machine.next_timer == after(10)
    run.wait(9.9)
    assert run.run.cancel_requested_at is None
    run.wait(0.1)
    assert run.run.cancel_requested_at == after(10)
    assert run.run.note == "cancelled by its budget of $10.00 (by estimate)"
    assert run.effects.count(OVER) == 1
    assert any(isinstance(effect, Stop) for effect in run.effects)
    assert run.machine.next_timer is None
    run.wait(100)
    run.close("a")
    assert (str(run.run.status), run.statuses()) == ("cancelled", {"a": "cancelled", "b": "cancelled"})
    assert run.effects.count(OVER) == 1


def test_an_alert_is_sent_once_and_the_run_continues() -> None:
    run = play(ALERT)
    run.launch()
    run.wait(10)
    assert run.effects == [OVER]
    for _ in range(2):
        run.wait(50)
        run.succeed("a") if run.status("a") != "success" else None
        run.rebuild()
        run.launch()
        assert run.machine.next_timer is None
    run.succeed("b")
    assert (run.effects, str(run.run.status)) == ([OVER], "success")


def test_ended_attempts_count_and_a_rebuilt_machine_decides_the_same() -> None:
    run = play()
    run.launch()
    run.start("a")
    run.wait(6)
    run.succeed("a")
    assert run.machine.next_timer is None or run.machine.next_timer > run.now
    run.launch()
    for machine in (run.machine, run.rebuild()):
        machine.handle(ev.TimerDue(), run.now)
        assert machine.next_timer == after(10)
    run.wait(4)
    assert run.run.cancel_requested_at == after(10)


def test_nothing_is_started_once_the_budget_is_spent() -> None:
    run = play()
    run.launch()
    run.start("a")
    run.now += timedelta(seconds=30)
    run.succeed("a")  # seen late: it has cost too much
    assert run.launch() == []
    assert run.statuses() == {"a": "success", "b": "cancelled"}


def test_a_minimum_that_is_billed_counts_at_the_launch() -> None:
    run = Play(workflow(spec("a"), spec("b"), budget=CANCEL), prices=OnePrice(0.1, BilledTime(60)))
    run.launch()
    assert run.machine.next_timer == run.now  # two attempts with $6 each
    run.feed(ev.TimerDue())
    assert run.run.cancel_requested_at == run.now


def test_a_wake_that_was_planned_too_early_is_planned_again() -> None:
    run = Play(workflow(spec("a"), budget=CANCEL), prices=OnePrice(0.1, BilledTime(60)))
    run.launch()
    assert run.machine.next_timer == after(40)  # $6 are counted already; it costs more after 60 seconds
    run.wait(40)
    assert run.machine.next_timer == after(80)
    run.wait(40)
    assert run.machine.next_timer == after(100)
    run.wait(20)
    assert run.run.cancel_requested_at == after(100)


def test_a_cancelled_run_that_is_retried_has_its_budget_again() -> None:
    run = play()
    run.launch()
    run.wait(10)
    run.close("a")
    run.rebuild()
    run.now += timedelta(seconds=5)
    run.command(CommandKind.RETRY)
    run.launch()
    assert run.machine.next_timer == after(25)
    run.wait(10)
    assert run.effects.count(OVER) == 2
    assert run.run.cancel_requested_at == after(25)


def test_a_failed_run_that_is_retried_goes_on_with_what_is_left() -> None:
    run = play()
    run.launch()
    run.start("a")
    run.wait(6)
    run.fail("a")
    run.rebuild()
    run.command(CommandKind.RETRY)
    run.launch()
    assert run.machine.next_timer == after(10)


def test_a_paused_run_is_cancelled_while_its_attempts_cost() -> None:
    run = play()
    run.launch()
    run.command(CommandKind.PAUSE)
    run.wait(10)
    assert run.run.cancel_requested_at == after(10)


def test_attempts_without_a_price_cost_nothing_for_a_budget() -> None:
    run = play(prices=OnePrice(None))
    run.launch()
    assert run.machine.next_timer is None
    run.wait(1e6)
    assert run.run.cancel_requested_at is None


def test_a_wide_run_plans_one_wake_and_not_one_for_each_end() -> None:
    items = Const(list(range(100)))
    run = Play(workflow(spec("each", foreach=items), budget=Budget(1e6, OnExceed.CANCEL)), prices=OnePrice())
    run.launch()
    planned = {run.machine.next_timer}
    for index in range(99):
        run.now += timedelta(seconds=1)
        run.succeed(f"each[{index}]")
        planned.add(run.machine.next_timer)
    assert len(planned) == 1


moments = st.floats(0, 500, allow_nan=False).map(lambda seconds: START + timedelta(seconds=round(seconds, 3)))


@given(
    st.lists(st.tuples(moments, moments, moments, st.booleans(), st.booleans()), max_size=12),
    moments,
    st.sampled_from([OnePrice(), OnePrice(0.3, BilledTime(60)), OnePrice(0.3, BilledTime(60), operations())]),
)
def test_the_meter_agrees_with_the_estimate(
    lives: list[tuple[object, object, object, bool, bool]], now: object, prices: OnePrice
) -> None:
    """In whatever order attempts are launched, started and ended, and however often it is asked meanwhile."""
    flow = workflow(spec("a"), budget=CANCEL)
    run = Play(flow).run
    meter = BudgetMeter(CANCEL, flow, run, prices, BudgetState())
    rows = []
    for index, (launched, started, ended, has_started, has_ended) in enumerate(lives):
        launched, started, ended = sorted((launched, started, ended))  # type: ignore[type-var]
        row = Attempt(AttemptKey(RUN, TaskKey("a", index), 1), AttemptStatus.DISPATCHED, "process", "x", "h", launched)  # type: ignore[arg-type]
        meter.note(row)
        meter.cost(ended)  # type: ignore[arg-type]
        if has_started:
            row = replaced(row, status=AttemptStatus.RUNNING, started_at=started)
            meter.note(row)
        if has_ended:
            row = replaced(row, status=AttemptStatus.SUCCESS, started_at=started, finished_at=ended)
            meter.note(row)
        rows.append(row)
    later = max([now, *(max(life[:3]) for life in lives)])  # type: ignore[type-var]
    assert meter.cost(later) == pytest.approx(estimate(flow, rows, prices, later).usd, rel=1e-6, abs=1e-6)  # type: ignore[arg-type]

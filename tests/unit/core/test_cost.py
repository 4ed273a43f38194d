"""The estimate of what a run costs."""

from __future__ import annotations

from datetime import timedelta

import pytest

from ork.core.cost import estimate
from ork.model.ids import AttemptKey, TaskKey
from ork.model.prices import BilledTime
from ork.model.record import replaced
from ork.model.task import Attempt, AttemptStatus, GroupPlace

from .flows import RUN, START, spec, workflow
from .prices import OnePrice, operations

FLOW = workflow(spec("a"), spec("b"))


def attempt(
    task: str = "a", *, started: float | None = 0, ended: float | None = None, number: int = 1, index: int | None = None
) -> Attempt:
    def at(seconds: float | None) -> object:
        return None if seconds is None else START + timedelta(seconds=seconds)

    status = AttemptStatus.RUNNING if ended is None else AttemptStatus.SUCCESS
    key = AttemptKey(RUN, TaskKey(task, index), number)
    return replaced(
        Attempt(key, status, "process", "x", "h", START - timedelta(seconds=5)),
        started_at=at(started),
        finished_at=at(ended),
    )


NOW = START + timedelta(seconds=100)


def test_attempts_cost_the_time_from_start_to_end() -> None:
    cost = estimate(
        FLOW, [attempt(ended=10), attempt(started=20, ended=50, number=2), attempt("b")], OnePrice(0.5), NOW
    )
    a, b = cost.tasks
    assert (a.attempts, a.running, a.seconds, a.vcpu_seconds, a.gib_seconds, a.usd) == (2, 0, 40, 80, 160, 20)
    assert (b.attempts, b.running, b.seconds, b.usd) == (1, 1, 100, 50)  # still running: until now
    assert (cost.usd, cost.running, cost.unknown, cost.is_complete) == (70, 1, 0, True)


def test_a_minimum_is_billed_and_times_are_rounded_up_at_the_end() -> None:
    billed = BilledTime(60, 0.1)
    assert estimate(FLOW, [attempt(ended=10)], OnePrice(1, billed), NOW).usd == 60
    assert estimate(FLOW, [attempt(ended=70.01)], OnePrice(1, billed), NOW).usd == pytest.approx(70.1)
    assert estimate(FLOW, [attempt(ended=70.1)], OnePrice(1, billed), NOW).usd == pytest.approx(70.1)
    assert estimate(FLOW, [attempt(started=70)], OnePrice(1, billed), NOW).usd == 60


def test_what_never_started_costs_nothing_and_what_may_have_started_counts_from_its_launch() -> None:
    never = replaced(attempt(started=None, ended=50), status=AttemptStatus.LOST)
    assert estimate(FLOW, [never], OnePrice(), NOW).usd == 0
    assert estimate(FLOW, [attempt(started=None)], OnePrice(), NOW).usd == 105
    waits_for_its_turn = replaced(attempt(started=None), group=GroupPlace("g", 3, 1))
    assert estimate(FLOW, [waits_for_its_turn], OnePrice(), NOW).usd == 0


def test_a_deferred_attempt_costs_until_its_worker_left() -> None:
    deferred = replaced(attempt(ended=90), waits_for="[]", seen_at=START + timedelta(seconds=3))
    assert estimate(FLOW, [deferred], OnePrice(), NOW).usd == 3


def test_unknown_is_not_zero() -> None:
    cost = estimate(FLOW, [attempt(ended=10), attempt("ghost", ended=10)], OnePrice(), NOW)
    assert (cost.usd, cost.unknown, cost.is_complete) == (10, 1, False)
    assert [(task.name, task.unknown, task.why_unknown, task.vcpu_seconds) for task in cost.tasks] == [
        ("a", 0, None, 20),
        ("ghost", 1, "no such task", None),
    ]
    assert estimate(FLOW, [attempt(ended=10)], OnePrice(None), NOW).unknown == 1


def test_operations_are_counted_by_run_attempt_instance_and_minute() -> None:
    cost = estimate(FLOW, [attempt(ended=30), attempt("b", index=3, ended=60)], OnePrice(0, None, operations()), NOW)
    (writes,) = cost.operations
    assert (writes.name, writes.count) == ("firestore.write", pytest.approx(8 + 2 + 0.5 + 9))
    assert cost.usd == cost.operations_usd == pytest.approx(0.195)
    unpriced = estimate(FLOW, [], OnePrice(0, None, operations(None)), NOW)
    assert (unpriced.operations[0].usd, unpriced.is_complete) == (None, False)

"""A commit is under way while the next step has begun."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ork.errors import StoreUnavailableError
from ork.executors.executor import LaunchOrder, NotStarted
from ork.model.ids import RunId
from ork.model.record import replaced
from ork.model.run import RunStatus
from ork.scheduler.under_way import send_later
from tests.unit.core.flows import spec, workflow

from .bench_top import BenchTop

THREE = (spec("a"), spec("b"), spec("c"))


def overlapping(**flow: Any) -> tuple[BenchTop, RunId]:
    """One launch with each commit: `a` has been started, and the launch of `b` is under way."""
    top = BenchTop(workflow(*THREE, **flow), launch_batch=1)
    top.scheduler.commits.send = send_later
    run = top.create()
    assert top.step() == top.clock.now()
    assert top.statuses(run) == {"a": "dispatched", "b": "pending", "c": "pending"}
    assert [order.attempt.key.task.name for order in top.executor.started] == ["a"]
    assert top.scheduler.commits.under_way is not None
    return top, run


def steps_until_quiet(top: BenchTop) -> None:
    for _ in range(20):
        if top.step() != top.clock.now():
            return


def test_nothing_is_started_before_its_own_commit_whatever_is_under_way() -> None:
    top, run = overlapping()
    seen: list[str] = []

    async def look(orders: Sequence[LaunchOrder]) -> None:
        for order in orders:
            (stored,) = await top.store.list_attempts(run, order.attempt.key.task)
            seen.append(f"{order.attempt.key.task.name} {stored.status}")

    top.executor.before_start = look
    top.succeed("a")
    steps_until_quiet(top)
    assert seen == ["b dispatched", "c dispatched"]
    for name in "bc":
        top.succeed(name)
    steps_until_quiet(top)
    assert top.run(run).status is RunStatus.SUCCESS


def test_a_failure_that_ends_everything_ends_what_was_being_launched_too() -> None:
    top, run = overlapping(fail_fast=True)
    top.win_gate("a")
    top.say("a", "failed", 1, exit_code=1, failure={"kind": "exit", "message": "no"})
    top.die("a")
    steps_until_quiet(top)
    assert [order.attempt.key.task.name for order in top.executor.started] == ["a", "b"]
    assert [key.task.name for key in top.executor.stopped] == ["b"]
    assert top.statuses(run)["c"] == "skipped"
    top.say("b", "stopped", 1)
    top.die("b")
    steps_until_quiet(top)
    assert top.statuses(run) == {"a": "failed", "b": "cancelled", "c": "skipped"}
    assert top.run(run).status is RunStatus.FAILED


def test_so_does_a_start_that_is_refused_meanwhile() -> None:
    top = BenchTop(workflow(*THREE, fail_fast=True), launch_batch=1)
    top.scheduler.commits.send = send_later
    run = top.create()

    async def refuse(orders: Sequence[LaunchOrder]) -> None:
        top.executor.refusals = [
            NotStarted(order.attempt.key, "there is no such program", final=True) for order in orders
        ]
        top.executor.before_start = None

    top.executor.before_start = refuse
    steps_until_quiet(top)
    assert top.statuses(run)["a"] == "failed"
    for key in dict.fromkeys(top.executor.stopped):
        top.say(key.task.name, "stopped", 1)
        top.die(key.task.name)
    steps_until_quiet(top)
    assert top.run(run).status is RunStatus.FAILED
    assert top.statuses(run)["b"] == "cancelled"


def test_a_commit_that_fails_under_way_is_forgotten_with_everything_and_done_again() -> None:
    top, _ = overlapping()

    async def fail() -> Any:
        raise StoreUnavailableError("it is gone")

    under_way = top.scheduler.commits.under_way
    assert under_way is not None
    top.scheduler.commits.under_way = replaced(under_way, answer=fail)
    top.succeed("a")
    top.step()
    assert top.scheduler.owned_runs == ()
    top.clock.advance(2.0)
    steps_until_quiet(top)
    assert [order.attempt.key.task.name for order in top.executor.started] == ["a", "b", "c"]


def test_who_stops_waits_for_the_commit_that_is_under_way() -> None:
    top, run = overlapping()
    top.do(top.scheduler.stop(top.clock.now()))
    assert top.statuses(run)["b"] == "dispatched"
    top.scheduler.wake()
    steps_until_quiet(top)
    assert top.order("b").attempt.key.number == 1

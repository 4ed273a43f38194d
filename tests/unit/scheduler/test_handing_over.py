"""An attempt that hands over to jobs: it goes on without a worker, a slot or a heartbeat, whoever owns its run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ork.executors.executor import LaunchOrder
from ork.model.ids import RunId
from ork.model.run import CommandKind, RunCommand
from ork.model.task import Attempt
from ork.objects import layout
from tests.unit.core.flows import spec, workflow
from tests.unit.scheduler.bench_top import BenchTop

JOBS = [{"http": "http://127.0.0.1/", "every": 1}]


def handed_over(**fields: Any) -> tuple[BenchTop, RunId]:
    """A run whose one task waits; its worker is gone."""
    top = BenchTop(workflow(spec("a", **fields)))
    run = top.create()
    top.step()
    top.win_gate("a")
    top.waiting.alive.add(top.order("a").attempt.key)
    top.say("a", "deferred", 2, jobs=JOBS, finished_at=None)
    top.die("a")
    top.step(3)
    return top, run


def attempt_of(top: BenchTop, run: RunId) -> Attempt:
    found: Sequence[Attempt] = top.do(top.store.list_attempts(run))
    return found[-1]


def finish(top: BenchTop, state: str = "success", **fields: Any) -> None:
    """As whoever waits for the jobs would."""
    top.waiting.alive.clear()
    top.say("a", state, 3, **fields)


def test_the_row_says_what_it_waits_for_and_somebody_is_asked_to_wait() -> None:
    top, run = handed_over()
    attempt = attempt_of(top, run)
    assert (str(attempt.status), json.loads(attempt.waits_for or "")) == ("running", JOBS)
    assert top.waiting.watched == [attempt.key]
    assert top.statuses(run) == {"a": "running"}


def test_the_last_word_written_for_it_is_its_end() -> None:
    top, run = handed_over()
    finish(top, output={"inline": "7"})
    top.step(2)
    assert str(top.run(run).status) == "success"


def test_no_silence_is_too_long_while_somebody_waits() -> None:
    top, run = handed_over()
    for _ in range(100):
        top.clock.advance(30)
        top.step(2)
    assert top.statuses(run) == {"a": "running"}


def test_its_timeout_covers_the_wait_without_a_margin_and_the_jobs_are_told() -> None:
    top, run = handed_over(timeout=100.0)
    top.clock.advance(99)
    top.step(2)
    assert top.waiting.stopped == []
    top.clock.advance(2)
    top.step(4)
    assert top.waiting.stopped == [attempt_of(top, run).key]
    assert top.executor.stopped == []
    finish(top, "stopped")
    top.step(3)
    assert str(attempt_of(top, run).status) == "timed_out"


def test_a_cancelled_run_tells_the_jobs_and_ends() -> None:
    top, run = handed_over()
    top.do(top.store.submit_command(RunCommand(run, CommandKind.CANCEL), top.clock.now()))
    top.scheduler.wake()
    top.step(3)
    assert top.waiting.stopped == [attempt_of(top, run).key]
    finish(top, "stopped")
    top.step(3)
    assert str(top.run(run).status) == "cancelled"


def test_a_new_owner_goes_on_waiting() -> None:
    top, run = handed_over()
    key = attempt_of(top, run).key
    top.do(top.scheduler.stop())
    top.scheduler = top.new_scheduler("bea")
    top.step(3)
    assert top.waiting.watched == [key, key]
    finish(top)
    top.step(3)
    assert str(top.run(run).status) == "success"


def test_it_takes_no_slot_while_it_waits() -> None:
    top = BenchTop(workflow(spec("a"), spec("b")))
    top.do(top.store.set_limits({"*": 1}))
    top.create()
    top.step(2)
    (first,) = (order.attempt.key.task.name for order in top.executor.started)
    top.win_gate(first)
    top.waiting.alive.add(top.order(first).attempt.key)
    top.say(first, "deferred", 2, jobs=JOBS, finished_at=None)
    top.step(3)
    assert {order.attempt.key.task.name for order in top.executor.started} == {"a", "b"}


def test_a_worker_that_hands_over_between_two_looks_is_not_taken_for_lost() -> None:
    top = BenchTop(workflow(spec("a")))
    run = top.create()
    top.step()
    top.win_gate("a")
    top.say("a", "running", 1)
    top.step()
    key = top.order("a").attempt.key
    top.waiting.alive.add(key)

    find = top.executor.find

    async def find_late(attempts: Sequence[Attempt]) -> Any:
        """The status is written after it was read, and before the process is looked for."""
        top.executor.find = find  # type: ignore[method-assign]
        top.say("a", "deferred", 2, jobs=JOBS, finished_at=None)
        return await find(attempts)

    top.executor.find = find_late  # type: ignore[method-assign, assignment]
    top.die("a")
    top.step(4)
    assert json.loads(attempt_of(top, run).waits_for or "") == JOBS


def test_jobs_that_are_none_are_no_word_at_all() -> None:
    top = BenchTop(workflow(spec("a")))
    run = top.create()
    top.step()
    top.win_gate("a")
    for jobs in ([], "x", [1]):
        top.say("a", "deferred", 2, jobs=jobs, finished_at=None)
        top.step()
    assert top.statuses(run) == {"a": "dispatched"}
    assert isinstance(top.order("a"), LaunchOrder)


def test_one_that_nobody_could_be_asked_to_wait_for_is_tried_again_and_not_taken_for_lost() -> None:
    top, run = handed_over()
    top.waiting.alive.clear()
    top.scheduler.on_status(attempt_of(top, run).key)
    top.step()
    assert top.waiting.watched == [attempt_of(top, run).key] * 2
    assert attempt_of(top, run).closing is None


def test_one_whose_documents_are_gone_for_long_is_lost_and_never_started_again() -> None:
    top, run = handed_over()
    key = attempt_of(top, run).key
    top.objects.delete(layout.attempt_stem(key))
    top.waiting.alive.clear()
    top.scheduler.on_status(key)
    top.step(4)
    assert attempt_of(top, run).closing is None  # they may only be slow to be seen
    for _ in range(4):
        top.clock.advance(20)
        top.step(4)
    assert [order.attempt.key for order in top.executor.started] == [key]
    assert str(top.run(run).status) == "failed"


def test_a_scheduler_that_stood_still_does_not_take_its_own_silence_for_that_of_an_attempt() -> None:
    """It was frozen for longer than its lease while it asked whoever waits for the jobs."""
    top, run = handed_over()
    top.waiting.alive.clear()
    find = top.waiting.find

    async def find_after_standing_still(attempts: Sequence[Attempt]) -> Any:
        top.clock.advance(137)
        top.waiting.find = find  # type: ignore[method-assign]
        return await find(attempts)

    top.waiting.find = find_after_standing_still  # type: ignore[method-assign]
    top.clock.advance(31)
    top.step(2)
    assert top.waiting.find == find
    top.waiting.alive.add(attempt_of(top, run).key)
    top.step(4)
    attempt = attempt_of(top, run)
    assert (str(attempt.status), attempt.closing) == ("running", None)

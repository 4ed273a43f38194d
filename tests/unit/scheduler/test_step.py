from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from ork.core import events as ev
from ork.core.limits import EVERYTHING
from ork.core.machine import RunMachine
from ork.errors import StoreError, StoreUnavailableError
from ork.executors.executor import LaunchOrder, NotStarted
from ork.model.ids import TaskKey
from ork.model.run import CommandKind, RunCommand, RunStatus
from ork.model.workflow import Ref, Secret
from ork.objects import documents, layout
from ork.scheduler.service import SchedulerService
from ork.telemetry import TelemetryEvent
from tests.unit.core.flows import spec, workflow

from .bench_top import BenchTop

TWO = workflow(spec("a"), spec("b", "a"))


def test_a_run_goes_through_its_tasks_in_order() -> None:
    top = BenchTop(TWO)
    run = top.create()
    top.step()
    assert top.statuses(run) == {"a": "dispatched", "b": "pending"}
    top.win_gate("a")
    top.say("a", "running", 1)
    top.step()
    assert top.statuses(run)["a"] == "running"
    top.say("a", "success", 2, output={"inline": "1"})
    top.step()
    assert top.statuses(run) == {"a": "success", "b": "dispatched"}
    top.succeed("b")
    top.step()
    assert top.run(run).status is RunStatus.SUCCESS


def test_a_step_that_finds_nothing_touches_nothing_and_names_no_time() -> None:
    top = BenchTop(TWO)
    top.step()
    before = top.store.statements
    assert top.step(5) is None
    assert top.store.statements == before


def test_nothing_is_started_before_its_attempt_is_committed() -> None:
    top = BenchTop(TWO)
    run = top.create()
    seen: list[str] = []

    async def look(orders: Sequence[LaunchOrder]) -> None:
        for order in orders:
            stored = await top.store.list_attempts(run, order.attempt.key.task)
            seen.append(f"{stored[-1].key.number} {stored[-1].status}")

    top.executor.before_start = look
    top.step()
    assert seen == ["1 dispatched"]


def test_an_upstream_output_reaches_the_spec_of_the_task_below() -> None:
    top = BenchTop(workflow(spec("a"), spec("b", "a", inputs=(("n", Ref(("tasks", "a", "output", "n"))),))))
    top.create()
    top.step()
    top.win_gate("a")
    top.say("a", "success", 2, output={"inline": '{"n": 7}'})
    top.step()
    attempt = top.order("b").attempt
    data = top.objects.read_spec(str(attempt.key))
    assert data is not None
    document = documents.open_signed(data, attempt.token_hash)
    assert document["inputs"] == {"n": {"value": 7}}
    assert document["upstream"] == {"a": {"value": {"n": 7}}}


def test_a_reference_that_points_nowhere_fails_the_task_and_is_not_retried() -> None:
    top = BenchTop(workflow(spec("a"), spec("b", "a", retries=3, inputs=(("n", Ref(("tasks", "a", "output", "x"))),))))
    run = top.create()
    top.step()
    top.win_gate("a")
    top.say("a", "success", 2, output={"inline": '{"n": 7}'})
    top.step(4)
    assert top.statuses(run)["b"] == "failed"
    assert "there is no `x`" in str(top.run(run).error)
    assert [order.attempt.key.task.name for order in top.executor.started] == ["a"]


def test_a_missing_secret_fails_the_task_with_its_name() -> None:
    top = BenchTop(workflow(spec("a", env=(("TOKEN", Secret("api")),))))
    run = top.create()
    top.step(4)
    assert "no secret `api`" in str(top.run(run).error)


def test_a_secret_reaches_the_order_and_never_the_spec() -> None:
    top = BenchTop(
        workflow(spec("a", env=(("TOKEN", Secret("api")),))), secrets=lambda name, _workflow: {"api": "s3cret"}[name]
    )
    top.create()
    top.step()
    order = top.order("a")
    assert order.secrets == (("ORK_SECRET_api", "s3cret"),)
    data = top.objects.read_spec(str(order.attempt.key))
    assert data is not None
    assert b"s3cret" not in data


# ── trouble ──────────────────────────────────────────────────────────────────────────────────────


def test_a_run_that_keeps_raising_is_set_aside_and_its_neighbour_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    top = BenchTop(workflow(spec("a")), replace_name(workflow(spec("a")), "bad"))
    honest = RunMachine.handle

    def handle(self: RunMachine, event: ev.Event, now: Any) -> None:
        if self.run.workflow == "bad":
            raise ZeroDivisionError("a bug")
        honest(self, event, now)

    monkeypatch.setattr(RunMachine, "handle", handle)
    bad, good = top.create("bad"), top.create("flow")
    top.step(10)
    top.succeed("a")
    top.step(2)
    assert top.run(good).status is RunStatus.SUCCESS
    assert top.run(bad).status is RunStatus.PAUSED
    assert "internal error" in str(top.run(bad).note)
    assert top.step() is None, "it does not come back by itself"
    monkeypatch.setattr(RunMachine, "handle", honest)
    top.do(top.store.submit_command(RunCommand(bad, CommandKind.RESUME), top.clock.now()))
    top.scheduler.wake()
    top.step(3)
    assert top.statuses(bad) == {"a": "dispatched"}


def replace_name(flow: Any, name: str) -> Any:
    from ork.model.record import replaced

    return replaced(flow, name=name)


@pytest.mark.parametrize("when", ["before", "after"])
def test_after_a_failed_commit_everything_is_read_again_and_the_attempt_is_started_once(when: str) -> None:
    top = BenchTop(workflow(spec("a")))
    run = top.create()
    honest, failures = top.store.commit, iter([True])

    async def commit(*args: Any) -> Any:
        if next(failures, False):
            if when == "after":
                await honest(*args)
            raise StoreUnavailableError("the disk is full")
        return await honest(*args)

    top.store.commit = commit  # type: ignore[method-assign]
    due = top.step()
    assert due is not None
    assert due > top.clock.now()
    top.clock.advance(1)
    top.step(3)
    top.clock.advance(1)
    top.step(3)
    assert [order.attempt.key.number for order in top.executor.started] == [1]
    top.succeed("a")
    top.step(2)
    assert top.run(run).status is RunStatus.SUCCESS
    assert top.scheduler.telemetry.counts[TelemetryEvent.STORE_RECOVERED] == 1


def test_a_worker_that_ends_before_it_began_is_started_again_and_at_last_given_up() -> None:
    top = BenchTop(workflow(spec("a")))
    run = top.create()
    top.step()
    for _ in range(12):
        if top.executor.alive:
            top.die("a")
        top.clock.advance(20)
        top.step(3)
    assert len(top.executor.started) == 4
    assert {order.attempt.key.number for order in top.executor.started} == {1}
    assert top.statuses(run) == {"a": "failed"}
    assert "ended before it began" in str(top.run(run).error)


def test_an_attempt_that_cannot_be_started_now_is_tried_again() -> None:
    top = BenchTop(workflow(spec("a")))
    run = top.create()

    async def refuse(orders: Sequence[LaunchOrder]) -> None:
        top.executor.refusals = [NotStarted(order.attempt.key, "too many open files", final=False) for order in orders]
        top.executor.before_start = None

    top.executor.before_start = refuse
    top.step()
    top.clock.advance(2)
    top.step(2)
    assert len(top.executor.started) == 2
    top.succeed("a")
    top.step()
    assert top.run(run).status is RunStatus.SUCCESS


def test_an_attempt_that_cannot_be_started_is_given_up_at_the_start_limit() -> None:
    top = BenchTop(workflow(spec("a")))
    run = top.create()

    async def refuse(orders: Sequence[LaunchOrder]) -> None:
        top.executor.refusals = [NotStarted(order.attempt.key, "too many open files", final=False) for order in orders]

    top.executor.before_start = refuse
    for _ in range(40):  # 400 seconds, in strides, so that the scheduler keeps its own lease
        top.step(3)
        top.clock.advance(10)
    assert top.statuses(run) == {"a": "failed"}
    assert "too many open files" in str(top.run(run).error)


def test_a_silent_worker_is_stopped_and_retried_only_when_it_is_gone() -> None:
    top = BenchTop(workflow(spec("a", retries=1)))
    run = top.create()
    top.step()
    top.win_gate("a")
    top.say("a", "running", 1)
    for _ in range(4):  # in strides, so that the scheduler keeps its own lease
        top.step(3)
        top.clock.advance(20)
    assert top.executor.stopped == [top.order("a").attempt.key]
    top.clock.advance(5)
    top.step(3)
    assert len(top.executor.started) == 1, "something of it is still alive"
    top.die("a")
    top.step(4)
    assert [order.attempt.key.number for order in top.executor.started] == [1, 2]
    assert top.statuses(run) == {"a": "dispatched"}


def test_a_forged_status_changes_nothing() -> None:
    top = BenchTop(workflow(spec("a")))
    run = top.create()
    top.step()
    attempt = top.order("a").attempt
    status = {"v": 1, "attempt": str(attempt.key), "seq": 5, "state": "success", "at": "", "started_at": ""}
    forged = documents.sign(status, documents.token_hash("a guess"))
    top.objects.put(layout.status_key(layout.attempt_stem(attempt.key)), forged)
    top.scheduler.on_status(attempt.key)
    top.step(2)
    assert top.statuses(run) == {"a": "dispatched"}
    assert top.scheduler.telemetry.counts[TelemetryEvent.DOCUMENT_REFUSED] > 0


def test_a_run_taken_over_by_another_is_forgotten() -> None:
    top = BenchTop(TWO)
    run = top.create()
    top.step()
    top.clock.advance(61)
    other = top.new_scheduler("ben")
    top.do(other.step(top.clock.now()))
    assert other.owned_runs == (run,)
    top.succeed("a")
    top.step(2)
    assert top.scheduler.owned_runs == ()
    assert [order.attempt.key.task.name for order in top.executor.started] == ["a"]


def test_a_cancel_that_arrives_before_the_end_is_known_wins() -> None:
    top = BenchTop(workflow(spec("a")))
    run = top.create()
    top.step()
    top.do(top.store.submit_command(RunCommand(run, CommandKind.CANCEL, by="ann"), top.clock.now()))
    top.succeed("a")  # without a wake: the scheduler does not know of the command yet
    top.step(3)
    assert top.run(run).status is RunStatus.CANCELLED
    assert top.statuses(run) == {"a": "success"}


def test_the_next_wake_up_is_the_next_retry() -> None:
    top = BenchTop(workflow(spec("a", retries=1, retry_delay=7.0)))
    top.create()
    top.step()
    top.win_gate("a")
    top.say("a", "failed", 2, failure={"kind": "exit", "message": "exit code 1"}, exit_code=1)
    top.die("a")
    assert top.step() == top.clock.now() + timedelta(seconds=7)


def test_stopping_lets_go_at_once_and_the_next_scheduler_goes_on() -> None:
    top = BenchTop(TWO)
    run = top.create()
    top.step()
    top.do(top.scheduler.stop())
    other = top.new_scheduler("ben")
    top.do(other.step(top.clock.now()))
    assert other.owned_runs == (run,)
    assert len(top.executor.started) == 1
    assert TaskKey("a") in {order.attempt.key.task for order in top.executor.started}


@pytest.mark.parametrize("batch", [16, 64, 200])
def test_a_wide_run_does_not_starve_its_neighbour(batch: int) -> None:
    wide = workflow(*[spec(f"t{i}") for i in range(500)])
    top = BenchTop(wide, replace_name(workflow(spec("only")), "small"), launch_batch=batch)
    top.create("flow")
    top.create("small")
    top.step()
    assert "only" in {order.attempt.key.task.name for order in top.executor.started}


class BrokenStoreError(StoreError):
    pass


def test_a_store_that_is_broken_for_good_is_the_callers_error() -> None:
    top = BenchTop(TWO)
    top.create()

    async def commit(*_args: Any) -> Any:
        raise BrokenStoreError("no such table")

    top.store.commit = commit  # type: ignore[method-assign]
    with pytest.raises(BrokenStoreError):
        top.step()
    assert top.scheduler.telemetry.counts[TelemetryEvent.STORE_FAILED] == 0
    assert top.scheduler.owned_runs == ()


def test_a_trouble_that_lasts_is_told_ever_more_rarely_and_its_end_after_a_step_that_succeeded() -> None:
    top = BenchTop(TWO)
    top.create()
    honest = top.store.commit

    async def commit(*_args: Any) -> Any:
        raise StoreUnavailableError("the disk is full")

    top.store.commit = commit  # type: ignore[method-assign]
    for _ in range(100):
        top.step()
        top.clock.advance(1)
    told = top.scheduler.telemetry.counts
    assert told[TelemetryEvent.STORE_FAILED] == 8  # after 0, 1, 3, 7, 15, 31, 61 and 91 seconds
    assert told[TelemetryEvent.STORE_RECOVERED] == 0
    top.store.commit = honest  # type: ignore[method-assign]
    top.step(3)
    assert told[TelemetryEvent.STORE_RECOVERED] == 1


def test_a_service_that_is_told_to_go_first_asks_what_was_cancelled_to_stop() -> None:
    top = BenchTop(workflow(spec("a")))
    run = top.create()
    top.step()
    top.win_gate("a")
    top.say("a", "running", 1)
    top.step()

    async def cancel_and_go() -> None:
        service = SchedulerService(top.scheduler, top.store, now=top.clock.now)
        top.scheduler._on_commit = lambda _runs: service.request_stop()
        await top.store.submit_command(RunCommand(run, CommandKind.CANCEL), top.clock.now())
        service.wake()
        await service.run()

    top.do(cancel_and_go())
    assert top.executor.stopped == [top.order("a").attempt.key]


def test_who_fills_the_limit_alone_does_not_look_for_dead_schedulers_after_every_commit() -> None:
    top = BenchTop(workflow(*(spec(f"t{n}") for n in range(9))))
    top.do(top.store.set_limits({EVERYTHING: 2}))
    looks = 0
    list_schedulers = top.store.list_schedulers

    async def counted() -> Any:
        nonlocal looks
        looks += 1
        return await list_schedulers()

    top.store.list_schedulers = counted  # type: ignore[method-assign]
    run = top.create()
    top.step(3)
    for n in range(9):
        top.succeed(f"t{n}")
        top.step(2)
    assert str(top.run(run).status) == "success"
    assert looks <= 3


def test_who_waits_for_slots_of_others_looks_whether_they_live_within_a_second() -> None:
    top = BenchTop(workflow(spec("a"), spec("b")))
    top.do(top.store.set_limits({EVERYTHING: 1}))
    top.create()
    due = top.step(3)
    assert (due - top.clock.now()).total_seconds() <= 1.0

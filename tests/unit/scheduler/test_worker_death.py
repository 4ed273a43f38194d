"""A callback without a status causes a full check: an unread heartbeat must not hide the death of its worker."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ork.executors.executor import Presence
from ork.model.task import Attempt
from tests.unit.core.flows import spec, workflow

from .bench_top import BenchTop


@pytest.mark.parametrize("beats", [1, 5])
def test_a_worker_that_dies_after_an_unread_heartbeat_is_given_up_at_once(beats: int) -> None:
    top = BenchTop(workflow(spec("a", retries=1)))
    run = top.create()
    top.step(2)
    top.win_gate("a")
    for seq in range(1, beats + 1):
        top.say("a", "running", seq)
        if seq == 1 and beats > 1:
            top.step()
    top.die("a")
    top.step(3)
    (first, *_) = top.do(top.store.list_attempts(run))
    assert str(first.status) == "lost"
    assert top.executor.stopped == []


def test_a_heartbeat_of_a_living_worker_ends_nothing() -> None:
    top = BenchTop(workflow(spec("a")))
    run = top.create()
    top.step(2)
    top.win_gate("a")
    top.say("a", "running", 1)
    top.say("a", "running", 2)
    top.step(3)
    assert top.statuses(run) == {"a": "running"}
    assert top.executor.stopped == []


def test_a_worker_that_wins_its_gate_just_after_it_seemed_to_be_gone_is_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    """A platform may start a worker whose start seemed to fail. The executor is asked again once the gate is won."""
    top = BenchTop(workflow(spec("a")))
    run = top.create()
    top.step(2)
    find, key = top.executor.find, top.order("a").attempt.key

    async def late(attempts: Sequence[Attempt]) -> Sequence[Presence]:
        found = await find(attempts)
        if top.win_gate("a"):
            top.executor.alive.add(key)
        return found

    monkeypatch.setattr(top.executor, "find", late)
    top.die("a")
    top.step(4)
    (attempt,) = top.do(top.store.list_attempts(run))
    assert attempt.closing is None
    assert top.executor.stopped == []
    top.say("a", "success", 1, exit_code=0)
    top.step(2)
    assert top.statuses(run) == {"a": "success"}

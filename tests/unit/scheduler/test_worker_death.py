"""A callback without a status causes a full check: an unread heartbeat must not hide the death of its worker."""

from __future__ import annotations

import pytest

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

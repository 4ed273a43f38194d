"""Below full limits: how many runs are claimed, and whose task goes first."""

from __future__ import annotations

import pytest

from ork.core.limits import EVERYTHING
from ork.model.record import replaced
from ork.objects import documents, layout
from tests.unit.core.flows import spec, workflow
from tests.unit.scheduler.bench_top import BenchTop


@pytest.mark.parametrize("limit", [EVERYTHING, "pool:db"])
def test_who_is_busy_below_a_full_limit_claims_no_more_runs_than_it_has_room_for(limit: str) -> None:
    top = BenchTop(workflow(*(spec(f"t{n}", pool="db") for n in range(6))), claim_room=5)
    top.do(top.store.set_limits({limit: 4}))
    for _ in range(80):
        top.create()
        top.clock.advance(0.001)
    for _ in range(80):
        top.clock.advance(0.05)
        top.step()
        for order in [each for each in top.executor.started if each.attempt.key in top.executor.alive][:2]:
            attempt, at = order.attempt, top.clock.now().isoformat()
            status = {"v": 1, "attempt": str(attempt.key), "seq": 9, "state": "success", "at": at, "started_at": at}
            signed = documents.sign(status | {"finished_at": at, "exit_code": 0}, attempt.token_hash)
            top.objects.put(layout.status_key(layout.attempt_stem(attempt.key)), signed)
            top.executor.alive.discard(attempt.key)
            top.scheduler.news(attempt.key)
        assert len(top.scheduler.owned_runs) <= 6


def test_before_a_full_pool_the_more_urgent_goes_first_whichever_run_it_belongs_to() -> None:
    flows = [
        replaced(workflow(*(spec(f"{name}{n}", pool="db", priority=priority) for n in range(3))), name=name)
        for name, priority in (("a", 9), ("b", 0))
    ]
    top = BenchTop(*flows)
    top.do(top.store.set_limits({"pool:db": 1}))
    runs = []
    for name in "ab":
        runs.append(top.create(name))
        top.step(3)
    order = []
    for _ in range(6):
        active = [task for run in runs for task, status in top.statuses(run).items() if status == "dispatched"]
        order += active
        for task in active:
            top.succeed(task)
        top.step(3)
    assert order == ["a0", "a1", "a2", "b0", "b1", "b2"]

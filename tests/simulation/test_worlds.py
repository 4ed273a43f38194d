"""What the worlds are made of: they must contain the trouble they claim to survive."""

from __future__ import annotations

from collections import Counter

import pytest

from ork.model.task import AttemptStatus, GiveUp
from ork.testing.faults import FaultRates
from ork.testing.world import World


@pytest.fixture(scope="module")
def histories() -> Counter[str]:
    """How often each kind of thing happened in a hundred worlds."""
    seen: Counter[str] = Counter()
    for seed in range(100):
        world = World(seed, keep_trace=True)
        seen.update(line.split()[1] for line in world.run().trace)
        for record in world.judge.ledger.runs.values():
            seen.update(f"attempt {attempt.status}" for attempt in record.attempts.values())
            seen.update(f"closing {attempt.closing}" for attempt in record.attempts.values() if attempt.closing)
            seen.update([f"run {record.run.status}"])
    return seen


@pytest.mark.parametrize("status", [status for status in AttemptStatus if status.is_final])
def test_attempts_end_in_every_way(histories: Counter[str], status: AttemptStatus) -> None:
    assert histories[f"attempt {status}"] > 0


@pytest.mark.parametrize("reason", list(GiveUp))
def test_attempts_are_given_up_for_every_reason(histories: Counter[str], reason: GiveUp) -> None:
    assert histories[f"closing {reason}"] > 0


@pytest.mark.parametrize("what", ["crashed", "buried", "fenced", "claimed", "released", "launched"])
def test_schedulers_die_and_take_over(histories: Counter[str], what: str) -> None:
    assert histories[what] > 0


@pytest.mark.parametrize("status", ["success", "failed", "cancelled"])
def test_runs_end_in_every_way(histories: Counter[str], status: str) -> None:
    assert histories[f"run {status}"] > 0


@pytest.mark.parametrize("seed", range(5))
def test_without_faults_nothing_is_lost_and_nobody_crashes(seed: int) -> None:
    world = World(seed, rates=FaultRates(), keep_trace=True)
    outcome = world.run()
    statuses = {attempt.status for record in world.judge.ledger.runs.values() for attempt in record.attempts.values()}
    assert outcome.violations == ()
    assert AttemptStatus.LOST not in statuses
    assert not any("crashed" in line for line in outcome.trace)

"""P2: one run per workflow and scheduled time, for ever, whatever happens to schedulers and clocks."""

from __future__ import annotations

import pytest

from ork.testing.mutants import applied
from ork.testing.mutations import Mutant
from ork.testing.schedule_world import SCHEDULE_MUTANTS, ScheduleWorld

SEEDS = range(60)
MOST_SEEDS = 150


@pytest.mark.parametrize("part", range(4))
def test_every_time_has_exactly_one_run(part: int) -> None:
    for seed in SEEDS[part::4]:
        assert ScheduleWorld(seed).run().violations == (), f"seed {seed}"


@pytest.mark.parametrize("mutant", SCHEDULE_MUTANTS, ids=lambda mutant: mutant.name)
def test_every_mutant_of_firing_is_killed(mutant: Mutant) -> None:
    with applied(mutant):
        killed_by = next((seed for seed in range(MOST_SEEDS) if ScheduleWorld(seed).run().violations), None)
    assert killed_by is not None, mutant.breaks


def test_the_same_seed_gives_the_same_world() -> None:
    assert ScheduleWorld(5).run().trace_hash == ScheduleWorld(5).run().trace_hash


def test_worlds_hold_times_that_came_due_while_nobody_was_there() -> None:
    fired = [
        len([r for r in world.judge.ledger.runs.values() if r.run.workflow == "clock"]) for world in _ran(SEEDS[1:9])
    ]
    assert min(fired) >= 1
    assert max(fired) > 5


def _ran(seeds: range) -> list[ScheduleWorld]:
    worlds = [ScheduleWorld(seed) for seed in seeds]
    for world in worlds:
        world.run()
    return worlds

"""P2: one run per workflow and scheduled time, for ever, whatever happens to schedulers and clocks."""

from __future__ import annotations

import pytest

from ork.testing.timetable import NAME
from ork.testing.world import World

SEEDS = range(60)


def scheduled(seed: int) -> World:
    return World(seed, plain=True, scheduled=True)


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in range(1, 8))])
def test_every_time_has_exactly_one_run(part: int) -> None:
    for seed in SEEDS[part::8]:
        assert scheduled(seed).run().violations == (), f"seed {seed}"


def test_the_same_seed_gives_the_same_world() -> None:
    assert scheduled(5).run().trace_hash == scheduled(5).run().trace_hash


@pytest.mark.slow
def test_worlds_hold_times_that_came_due_while_nobody_was_there() -> None:
    worlds = [scheduled(seed) for seed in SEEDS[1:9]]
    for world in worlds:
        world.run()
    fired = [sum(record.run.workflow == NAME for record in world.judge.ledger.runs.values()) for world in worlds]
    assert sum(many > 0 for many in fired) >= 6  # in some, schedulers are down for too long to fire anything
    assert max(fired) > 5

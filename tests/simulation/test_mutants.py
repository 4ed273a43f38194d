"""The measure of the simulator: every rule of the protocol, broken on purpose, is noticed."""

from __future__ import annotations

import pytest

from ork.testing.world import World
from tests.simulation.mutants.hunt import applied, hunt, seeds_for
from tests.simulation.mutants.mutant_list import MUTANTS
from tests.simulation.mutants.mutations import Mutant


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_every_mutant_is_killed(mutant: Mutant) -> None:
    verdict = hunt(mutant, seeds_for(mutant))
    assert verdict.is_killed, f"{mutant.name} lives after {verdict.seeds} seeds: {mutant.breaks}"


def test_there_are_enough_mutants_and_each_has_a_name_of_its_own() -> None:
    assert len(MUTANTS) >= 20
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)


def test_a_mutant_leaves_no_trace_behind() -> None:
    before = World(3).run().trace_hash
    for mutant in MUTANTS:
        with applied(mutant):
            pass
    assert World(3).run().trace_hash == before

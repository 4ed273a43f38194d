"""One bad run never stops the loop or its neighbours."""

from __future__ import annotations

from itertools import islice
from typing import Any

import pytest

from ork.core import events as ev
from ork.core.machine import RunMachine
from ork.model.ids import RunId
from ork.model.run import RunStatus
from ork.testing import ending
from ork.testing.faults import FaultRates
from ork.testing.world import World
from tests.simulation.mutants.hunt import applied
from tests.simulation.mutants.mutations import Mutant


def poison(victims: list[RunId], event_type: type) -> Mutant:
    """The first run that hears such an event has a machine that raises at it, always."""

    def make(original: Any) -> Any:
        def handle(self: Any, event: Any, now: Any) -> None:
            if isinstance(event, event_type) and (not victims or victims[0] == self.run.id):
                victims[:] = [self.run.id]
                raise ValueError("poison")
            original(self, event, now)

        return handle

    return Mutant("poison", "", ((RunMachine, "handle", make),))


def raising(victims: list[RunId], method: str) -> Mutant:
    """The first run that has begun and whose machine is asked this has one that raises at it, always."""

    def make(original: Any) -> Any:
        def ask(self: Any, *arguments: Any) -> Any:
            if self.run.status is RunStatus.RUNNING and (not victims or victims[0] == self.run.id):
                victims[:] = [self.run.id]
                raise ValueError("poison")
            return original(self, *arguments)

        return ask

    return Mutant("raising", "", ((RunMachine, method, make),))


def roomy_worlds(count: int) -> list[int]:
    """Seeds of worlds where a run that is set aside takes nobody's place."""
    seeds = (seed for seed in range(1000) if not any(v.workflow.max_active_runs for v in World(seed).versions))
    return list(islice(seeds, count))


@pytest.mark.slow
@pytest.mark.parametrize("event_type", [ev.Created, ev.Started, ev.Succeeded], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("seed", roomy_worlds(4))
def test_a_run_that_keeps_raising_is_set_aside_and_the_others_end(
    seed: int, event_type: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    victims: list[RunId] = []
    check_that_the_others_end(seed, poison(victims, event_type), victims, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["take", "offer", "settle"])
@pytest.mark.parametrize("seed", roomy_worlds(3))
def test_a_run_that_cannot_say_what_it_decided_is_set_aside_and_the_others_end(
    seed: int, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    victims: list[RunId] = []
    check_that_the_others_end(seed, raising(victims, method), victims, monkeypatch)


def check_that_the_others_end(seed: int, broken: Mutant, victims: list[RunId], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ending, "_check_replay", lambda *_: None)  # it would feed the poisoned machine itself
    world = World(seed, rates=FaultRates())
    world.limits = {}
    world.people.triggers = 3
    world.ends_at_violation = False
    with applied(broken):
        outcome = world.run()
    others = [record for run, record in world.judge.ledger.runs.items() if run not in victims]
    assert victims
    assert others
    assert [record.run.id for record in others if not record.run.status.is_final] == []
    assert [found.detail for found in outcome.violations if victims[0] not in found.detail] == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", roomy_worlds(12))
def test_runs_whose_rows_become_unreadable_end_after_a_repair_and_the_others_end_anyway(seed: int) -> None:
    world = World(seed)
    world.limits = {}
    world.people.triggers = 5
    world.damages = 12
    outcome = world.run()
    assert [violation.detail for violation in outcome.violations] == []


@pytest.mark.slow
def test_some_of_those_rows_are_read_while_they_are_damaged() -> None:
    """The test above would prove nothing if nobody came by."""
    seen = 0
    for seed in roomy_worlds(12):
        world = World(seed, keep_trace=True)
        world.limits = {}
        world.people.triggers = 5
        world.damages = 12
        seen += sum("set aside" in line for line in world.run().trace)
    assert seen > 0

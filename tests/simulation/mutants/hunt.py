"""Hunts mutants with simulated worlds. `make mutants` hunts all of them and prints what killed each."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from ork.model.record import Record
from ork.testing.violations import Violation
from ork.testing.world import World
from tests.simulation.mutants.mutant_list import MUTANTS
from tests.simulation.mutants.mutations import Make, Mutant

MOST_SEEDS = 400
# The seed that killed a mutant last. It is tried first, and the others only if it no longer does.
_KILLERS = dict(
    line.split() for line in (Path(__file__).parent.parent / "killers.txt").read_text().splitlines() if line[0] != "#"
)


class Verdict(Record):
    """`seed` and `violation` that gave the mutant away; both None if it lived."""

    mutant: Mutant
    seeds: int
    seed: int | None = None
    violation: Violation | None = None

    @property
    def is_killed(self) -> bool:
        return self.violation is not None


def seeds_for(mutant: Mutant) -> list[int]:
    return [int(_KILLERS.get(mutant.name, 0)), *range(MOST_SEEDS)]


@contextmanager
def applied(mutant: Mutant) -> Iterator[None]:
    """The mutant is part of this process until the block ends."""
    with ExitStack() as stack:
        for owner, name, make in mutant.swaps:
            stack.enter_context(_swapped(owner, name, make))
        yield


def hunt(mutant: Mutant, seeds: Iterable[int]) -> Verdict:
    """Runs worlds with the mutant in them until one shows it."""
    tried = 0
    with applied(mutant):
        for seed in seeds:
            tried += 1
            outcome = World(seed, on=mutant.on).run()
            if outcome.violations:
                _check_is_sound(mutant, outcome.violations[0])
                return Verdict(mutant, tried, seed, outcome.violations[0])
    return Verdict(mutant, tried)


def _check_is_sound(mutant: Mutant, violation: Violation) -> None:
    """One that stumbles over itself has not been caught: it no longer fits the code it is to break."""
    if re.search(r"mut(ant|ation)s\.py:", violation.detail):
        raise RuntimeError(f"{mutant.name} is broken itself: {violation.detail}")


def score(emit: Callable[[str], None]) -> list[Verdict]:
    """Hunts every mutant and says how each of them ended."""
    verdicts = []
    width = max(len(mutant.name) for mutant in MUTANTS)
    for mutant in MUTANTS:
        verdict = hunt(mutant, seeds_for(mutant))
        verdicts.append(verdict)
        emit(f"{mutant.name:<{width}}  {_ending(verdict)}")
    killed = sum(verdict.is_killed for verdict in verdicts)
    emit(f"{killed} of {len(verdicts)} mutants killed")
    return verdicts


def _ending(verdict: Verdict) -> str:
    if verdict.violation is None:
        return f"LIVES after {verdict.seeds} seeds: {verdict.mutant.breaks}"
    return f"killed by seed {verdict.seed} ({verdict.violation.invariant})"


@contextmanager
def _swapped(owner: Any, name: str, make: Make) -> Iterator[None]:
    original = vars(owner)[name]
    places = _homes_of(original, name) if isinstance(owner, ModuleType) else [owner]
    replacement = make(original)
    for place in places:
        setattr(place, name, replacement)
    try:
        yield
    finally:
        for place in places:
            setattr(place, name, original)


def _homes_of(function: object, name: str) -> list[ModuleType]:
    """The module that defines it and all that imported it, save for those that judge."""
    ours = [module for key, module in sorted(sys.modules.items()) if key.startswith("ork.")]
    return [m for m in ours if vars(m).get(name) is function and not _judges(m.__name__)]


def _judges(module: str) -> bool:
    return module.startswith("ork.testing.") and not module.startswith("ork.testing.firestore.")


def main() -> int:
    return 0 if all(verdict.is_killed for verdict in score(print)) else 1


if __name__ == "__main__":
    sys.exit(main())

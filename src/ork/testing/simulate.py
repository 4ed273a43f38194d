"""Simulates many worlds: the implementation of `ork sim`."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from itertools import count, takewhile
from typing import Any

from ork.model.record import Record
from ork.testing.violations import INVARIANTS, Violation
from ork.testing.world import PARTS, World

USUAL_SEEDS = 200


class SimulationReport(Record):
    """`trace_hash` covers every event of every world, in order: equal reports mean equal histories."""

    seeds: int
    violations: tuple[tuple[int, Violation], ...]
    trace_hash: str
    played: Mapping[str, int]  # number of worlds in which each part occurred

    def to_json(self) -> dict[str, Any]:
        found = [{"seed": seed, "invariant": bad.invariant, "detail": bad.detail} for seed, bad in self.violations]
        return {
            "seeds": self.seeds,
            "violations": found,
            "trace_hash": self.trace_hash,
            "played": dict(self.played),
        }


def simulate(
    seeds: Iterable[int], emit: Callable[[str], None] = lambda _line: None, *, on: str = "sqlite"
) -> SimulationReport:
    """Run a world per seed to its end. Each seed with a violation is reported with the command that replays it."""
    traces = sha256()
    violations: list[tuple[int, Violation]] = []
    ran = 0
    played = Counter(dict.fromkeys(PARTS, 0))
    for seed in seeds:
        outcome = World(seed, on=on).run()
        ran += 1
        played.update(outcome.played)
        traces.update(outcome.trace_hash.encode())
        violations += [(seed, violation) for violation in outcome.violations]
        if outcome.violations:
            emit(f"{explain(outcome.violations[0])}\n  replay with: {replay_command(seed, on)}")
    return SimulationReport(ran, tuple(violations), traces.hexdigest(), played)


def replay_command(seed: int, on: str = "sqlite") -> str:
    return f"ork sim --seed {seed}" + ("" if on == "sqlite" else f" --store {on}")


def replay(seed: int, emit: Callable[[str], None], *, on: str = "sqlite") -> SimulationReport:
    """Run one world and print each event."""
    outcome = World(seed, keep_trace=True, on=on).run()
    for line in outcome.trace:
        emit(line)
    for violation in outcome.violations:
        emit(explain(violation))
    violations = tuple((seed, violation) for violation in outcome.violations)
    played = {part: int(part in outcome.played) for part in PARTS}
    return SimulationReport(1, violations, sha256(outcome.trace_hash.encode()).hexdigest(), played)


def explain(violation: Violation) -> str:
    promise = INVARIANTS[violation.invariant]
    return f"{violation.invariant} at {violation.moment:.1f} s: {violation.detail}\n  promised: {promise}"


def simulate_command(
    seed: int | None, seconds: float | None, seeds: int | None, emit: Callable[[str], None], on: str = "sqlite"
) -> dict[str, Any]:
    """`ork sim`: one seed line by line, a number of seeds, or as many as fit into a number of seconds."""
    if seed is not None:
        report = replay(seed, emit, on=on)
    elif seconds is not None:
        end = time.monotonic() + seconds
        report = simulate(takewhile(lambda _seed: time.monotonic() < end, count()), emit, on=on)
    else:
        report = simulate(range(USUAL_SEEDS if seeds is None else seeds), emit, on=on)
    emit(_summary(report))
    return report.to_json()


def _summary(report: SimulationReport) -> str:
    failing = len({seed for seed, _ in report.violations})
    found = f"{failing} broke a promise" if failing else "no promise broken"
    parts = ", ".join(f"{many} with {part}" for part, many in report.played.items())
    return f"{report.seeds} {'seed' if report.seeds == 1 else 'seeds'} ({parts}), {found}"

"""Measures whether history makes runs slower: a store with a million finished runs compared with an empty one."""

from __future__ import annotations

from typing import Any

from ork.bench.ground import Ground
from ork.bench.measure import ResultTarget, latencies, one_result
from ork.bench.sampling import drive
from ork.bench.scale import Scale

TASKS = 2  # of each run
FLOOR = "the same runs, turn by turn, in an empty store"


def history(scale: Scale, ground: Ground) -> list[dict[str, Any]]:
    """A result for each size of the history: the mean duration of a step, and other costs in `costs_ms`."""
    with ground.fresh_store() as filled, ground.fresh_store() as empty:
        stores = (filled or f"sqlite:{ground.folder}/filled.db", empty or f"sqlite:{ground.folder}/empty.db")
        found = drive(ground.folder, None, "history", *stores, *map(str, scale.history))
    return [result_of_size(f"history-{ground.store}", one, found) for one in found["sizes"]]


def result_of_size(scenario: str, found: dict[str, Any], process: dict[str, Any]) -> dict[str, Any]:
    filled, empty = found["filled"], found["empty"]
    return one_result(
        scenario,
        {"what": FLOOR, "seconds": empty["step_ms"] / 1000, "costs_ms": rounded(empty)},
        (ResultTarget(1.5, at_most=True), ResultTarget(50, at_most=True, field="costs_ms", part="list_ms")),
        size=found["size"],
        tasks=TASKS,
        tasks_per_second=round(TASKS / filled["run_ms"] * 1000, 1),
        seconds=filled["step_ms"] / 1000,
        latency_ms=latencies(milliseconds / 1000 for milliseconds in found["runs_ms"]),
        costs_ms=rounded(filled),
        ratios=rounded(found["ratios"]),
        ratio=round(found["ratios"]["step_ms"], 3),
        rss_mb=round(process["rss_mb"], 1),
    )


def rounded(costs: dict[str, float]) -> dict[str, float]:
    return {name: round(value, 3) for name, value in costs.items()}

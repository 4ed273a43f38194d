"""Measures the engine alone: the real scheduler and store, and an executor whose attempts cost nothing."""

from __future__ import annotations

import sys
from typing import Any

from ork.bench.ground import Ground
from ork.bench.measure import ResultTarget, Sample, Work, result_of
from ork.bench.processes import lean_floor, run
from ork.bench.sampling import driver_sample, interleaved
from ork.bench.scale import Scale

FLOORS = {
    "sqlite": "the same rows written by executemany, a hundred tasks to a transaction",
    "postgres": "the same rows written by one connection, a hundred tasks to a prepared statement and transaction",
}


def engine(scale: Scale, ground: Ground) -> list[dict[str, Any]]:
    count = scale.engine
    targets = (ResultTarget(10_000, field="tasks_per_second"),)
    work = Work(f"engine-{ground.store}", count, FLOORS[ground.store], targets, rate=True)

    def measure(number: int) -> Sample:
        place = ground.folder / f"engine-{number}"
        place.mkdir()
        with ground.fresh_store() as store:
            return driver_sample(place, store, "engine", "free", str(count))

    return [result_of(work, interleaved(scale.repeats, lambda: rows_floor(ground, count), measure))]


def rows_floor(ground: Ground, count: int) -> float:
    """Seconds to write the rows of that many tasks without an engine."""
    if ground.server is None:
        return lean_floor("engine", count, ground.folder)
    with ground.fresh_store() as store:
        script = (sys.executable, "-m", "ork.bench.floors.rows_on_postgres", str(count), str(store))
        return float(run(script, ground.folder).stdout)

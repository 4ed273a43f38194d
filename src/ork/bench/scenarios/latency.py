"""Measures the time from a trigger to the first line of the task, with an idle scheduler."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from ork.bench import workloads
from ork.bench.ground import Ground
from ork.bench.measure import ResultTarget, Sample, Work, latencies, result_of
from ork.bench.processes import lean_floors
from ork.bench.sampling import driver_sample
from ork.bench.scale import Scale
from ork.bench.services import scheduler
from ork.model.record import replaced

FLOOR = "a wake-up by socket, a commit to SQLite, a fork from a bare process and the gate"
TARGETS = (
    ResultTarget(10, at_most=True, field="latency_ms", part="p50"),
    ResultTarget(40, at_most=True, field="latency_ms", part="p99"),
)
AT_ONCE = 20  # triggers between two measurements of the floor


def latency(scale: Scale, ground: Ground) -> list[dict[str, Any]]:
    """Measure runs that are triggered one by one from another process, as the API and `ork trigger` do."""
    place = workloads.hello(ground.folder / "latency")
    floors: list[float] = []
    with ground.fresh_store() as store, scheduler(place, store):
        samples = list(rounds(scale.triggers, place, store, floors))
    tasks = sum(len(sample.tasks) for sample in samples)
    work = Work(
        f"latency-{ground.store}",
        tasks,
        FLOOR,
        TARGETS,
        more_floors={"latency_ms": latencies(floors)},
        latency=lambda task: task.started,
    )
    return [result_of(work, samples) | {"tasks_per_second": None}]


def rounds(triggers: int, place: Path, store: str | None, floors: list[float]) -> Iterator[Sample]:
    """A sample for each round of triggers: the median time until the tasks started."""
    driver_sample(place, store, *trigger(place, 2))  # excludes what is slow only the first time
    for _ in range(-(-triggers // AT_ONCE)):
        bare = lean_floors("latency", AT_ONCE, place)
        floors += bare
        sample = driver_sample(place, store, *trigger(place, AT_ONCE))
        yield replaced(sample, seconds=median(task.started for task in sample.tasks), floor_seconds=median(bare))


def trigger(place: Path, count: int) -> tuple[str, ...]:
    return "latency", str(place / "workflow.yaml"), str(count)

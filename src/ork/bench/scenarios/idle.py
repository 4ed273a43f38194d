"""Measures the cost of a scheduler with nothing to do."""

from __future__ import annotations

from time import perf_counter, sleep
from typing import Any

from ork.bench import workloads
from ork.bench.ground import Ground
from ork.bench.measure import ResultTarget, one_result
from ork.bench.sampling import drive
from ork.bench.scale import Scale
from ork.bench.services import SETTLE_SECONDS, cpu_seconds, rss_mb, scheduler

CPU_TARGET = ResultTarget(0.02, at_most=True, field="cpu_s")
FLOOR = "nothing at all: no CPU time, no statements"


def idle(scale: Scale, ground: Ground) -> list[dict[str, Any]]:
    """Measure an idle scheduler.

    CPU seconds (per minute) and memory are those of a real `ork scheduler`. Statements cannot be observed from outside,
    so a second scheduler with its own store counts them at the same time.
    """
    place, apart = workloads.hello(ground.folder / "idle"), workloads.hello(ground.folder / "counting")
    with ground.fresh_store() as store, ground.fresh_store() as other, scheduler(place, store) as pid:
        sleep(SETTLE_SECONDS)
        begin, before = perf_counter(), cpu_seconds(pid)
        statements = int(drive(apart, other, "idle", str(scale.idle_seconds))["statements"])
        used, elapsed, memory = cpu_seconds(pid) - before, perf_counter() - begin, rss_mb(pid)
    result = one_result(
        "idle",
        {"what": FLOOR, "seconds": 0.0},
        (CPU_TARGET,),
        seconds=round(elapsed, 3),
        rss_mb=round(memory, 1),
        cpu_s=round(used * 60 / elapsed, 4),
        statements=statements,
    )
    return [result]

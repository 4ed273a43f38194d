"""A scheduler with nothing to do: what it costs to leave it running."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

from ork.bench import workloads
from ork.bench.ground import Ground
from ork.bench.measure import Target, judged
from ork.bench.processes import run
from ork.bench.scale import Scale
from ork.bench.services import cpu_seconds, rss_mb, scheduler

SETTLE_SECONDS = 0.5  # whatever it does once, right after its start, is over by then
CPU_TARGET = Target(0.02, at_most=True, field="cpu_s")
FLOOR = "nothing at all: no CPU time, no statements"


def idle(scale: Scale, ground: Ground) -> list[dict[str, Any]]:
    place = workloads.hello(ground.folder / "idle")
    with ground.fresh_store() as store:
        return [result_of_watching(place, scale.idle_seconds, store)]


def result_of_watching(folder: Path, seconds: float, store: str | None = None) -> dict[str, Any]:
    """The result of leaving a scheduler alone for `seconds`.

    CPU seconds (per minute) and memory are those of a real `ork scheduler`. Statements cannot be seen from
    outside, so a second one in the same place counts its own at the same time.
    """
    with scheduler(folder, store) as pid:
        sleep(SETTLE_SECONDS)
        begin, before = perf_counter(), cpu_seconds(pid)
        statements = counted_statements(folder, seconds, store)
        used, elapsed, memory = cpu_seconds(pid) - before, perf_counter() - begin, rss_mb(pid)
    result = {
        "scenario": "idle",
        "tasks": 0,
        "tasks_per_second": None,
        "seconds": round(elapsed, 3),
        "latency_ms": {"p50": None, "p95": None, "p99": None},
        "stages_ms": None,
        "rss_mb": round(memory, 1),
        "cpu_s": round(used * 60 / elapsed, 4),
        "statements": statements,
        "floor": {"what": FLOOR, "seconds": 0.0, "tasks_per_second": None},
        "ratio": None,
        "ratio_range": None,
        "repeats": 1,
    }
    return result | judged((CPU_TARGET,), result)


def counted_statements(folder: Path, seconds: float, store: str | None) -> int:
    place = folder / "counting"
    place.mkdir()
    ended = run((sys.executable, "-m", "ork.bench.drive", "idle", str(seconds)), place, store)
    return int(json.loads(ended.stdout)["statements"])

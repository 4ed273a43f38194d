"""A scheduler with nothing to do: what it costs to leave it running."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

from ork.bench.measure import Target, judged
from ork.bench.processes import ORK, MeasuredProcessError, environment, run

READY_SECONDS = 30
SETTLE_SECONDS = 0.5  # whatever it does once, right after its start, is over by then
CPU_TARGET = Target(0.02, at_most=True, field="cpu_s")
FLOOR = "nothing at all: no CPU time, no statements"


def result_of_watching(folder: Path, seconds: float) -> dict[str, Any]:
    """The result of leaving a scheduler alone for `seconds`.

    CPU seconds (per minute) and memory are those of a real `ork scheduler`. Statements cannot be seen from
    outside, so a second one, with a store of its own, counts them at the same time.
    """
    with scheduler(folder) as pid:
        sleep(SETTLE_SECONDS)
        begin, before = perf_counter(), cpu_seconds(pid)
        statements = counted_statements(folder, seconds)
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
    return result | judged(CPU_TARGET, result)


@contextmanager
def scheduler(folder: Path) -> Iterator[int]:
    """The pid of an `ork scheduler` that has said that it is ready; it is stopped at the end."""
    child = subprocess.Popen(
        (*ORK, "scheduler"), cwd=folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert child.stdout is not None
    try:
        if not select.select([child.stdout], [], [], READY_SECONDS)[0] or not child.stdout.readline():
            raise MeasuredProcessError("`ork scheduler` did not get ready")
        yield child.pid
    finally:
        child.terminate()
        child.communicate()


def counted_statements(folder: Path, seconds: float) -> int:
    place = folder / "counting"
    place.mkdir()
    ended = run((sys.executable, "-m", "ork.bench.drive", "idle", str(seconds)), place)
    return int(json.loads(ended.stdout)["statements"])


def cpu_seconds(pid: int) -> float:
    """What its threads used, to the nanosecond: a clock tick would be half a minute's allowance."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9


def rss_mb(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

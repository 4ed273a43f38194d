"""The duration of a command from the shell."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from ork.bench import workloads
from ork.bench.ground import Ground
from ork.bench.measure import ResultTarget, Sample, Work, result_of
from ork.bench.processes import ORK, run
from ork.bench.scale import Scale

PYTHON_FLOOR = "`python -c pass`"


def cold(scale: Scale, ground: Ground) -> list[dict[str, Any]]:
    """Measure wall time from the shell, alternating with a bare interpreter."""
    place = workloads.hello(ground.folder / "hello")
    help_work = Work("cold-help", 0, PYTHON_FLOOR, (ResultTarget(5, at_most=True),))
    run_work = Work("cold-run", 1, PYTHON_FLOOR, (ResultTarget(18, at_most=True),))
    helps, runs = [], []
    with ground.fresh_store() as store:
        run((*ORK, "run", "workflow.yaml"), place, store)  # creates the store, and the bytecode of the imported modules
        for _ in range(scale.cold_repeats):
            floor = run((sys.executable, "-c", "pass"), place).seconds
            helps.append(cold_sample((*ORK, "--help"), place, store, floor))
            runs.append(cold_sample((*ORK, "run", "workflow.yaml"), place, store, floor))
    return [result_of(run_work, runs), result_of(help_work, helps)]


def cold_sample(argv: tuple[str, ...], folder: Path, store: str | None, floor_seconds: float) -> Sample:
    ended = run(argv, folder, store)
    return Sample(ended.seconds, floor_seconds, ended.cpu_seconds, ended.rss_mb)

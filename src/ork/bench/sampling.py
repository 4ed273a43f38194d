"""Samples, each between two measurements of its floor: a machine that slows down in the middle slows down both."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ork.bench.measure import Sample, TaskSeconds
from ork.bench.processes import run
from ork.model.record import replaced


def interleaved(repeats: int, floor: Callable[[], float], measure: Callable[[int], Sample]) -> list[Sample]:
    """The floor of a sample is the mean of the one before it and the one after it."""
    samples, before = [], floor()
    for number in range(repeats):
        sample = measure(number)
        after = floor()
        samples.append(replaced(sample, floor_seconds=(before + after) / 2))
        before = after
    return samples


def driver_sample(folder: Path, store: str | None, *arguments: str) -> Sample:
    """The values that the measured process reports; its floor is not known yet."""
    measured = drive(folder, store, *arguments)
    return Sample(
        measured["seconds"],
        0.0,
        measured["cpu_s"],
        measured["rss_mb"],
        measured["statements"],
        tuple(TaskSeconds(*times) for times in measured["tasks"]),
        measured.get("rss_growth_mb"),
        measured.get("loop", {}),
        measured.get("first_s"),
    )


def drive(folder: Path, store: str | None, *arguments: str) -> dict[str, Any]:
    """The measurements of a driver in its own process."""
    answer = run((sys.executable, "-m", "ork.bench.drive", *arguments), folder, store).stdout
    measured: dict[str, Any] = json.loads(answer)
    return measured

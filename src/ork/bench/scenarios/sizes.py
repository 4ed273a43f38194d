"""Measures whether a task of a large run costs more than one of a small run: wide (fan-out and fan-in) and deep
(chain)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ork.bench.ground import Ground
from ork.bench.measure import ResultTarget, Sample, Work, result_of
from ork.bench.sampling import driver_sample
from ork.bench.scale import Scale
from ork.model.record import replaced

FLOOR = "as many tasks at the CPU time of one in the smallest run, measured just before"


def wide(scale: Scale, ground: Ground) -> list[dict[str, Any]]:
    return series("wide", scale.wide, ground)


def deep(scale: Scale, ground: Ground) -> list[dict[str, Any]]:
    return series("deep", scale.deep, ground)


def series(shape: str, sizes: Sequence[int], ground: Ground) -> list[dict[str, Any]]:
    """Measure the engine alone by the size of the run; linear growth gives a ratio of one."""
    return [result_of_size(shape, size, sizes[0], ground) for size in sizes]


def result_of_size(shape: str, size: int, smallest: int, ground: Ground) -> dict[str, Any]:
    """The result for one size. The ratio is that of CPU time, because wall time is too noisy for such small
    differences."""
    small, large = one_run(shape, smallest, ground), one_run(shape, size, ground)
    growth = (large.cpu_seconds or 0.0) / size / ((small.cpu_seconds or 1.0) / smallest)
    work = Work(f"{shape}-{ground.store}", size, FLOOR, (ResultTarget(1.5, at_most=True),))
    result = result_of(work, [replaced(large, floor_seconds=large.seconds / growth)])
    return result | {"size": size, "kb_each": round((large.rss_growth_mb or 0.0) * 1024 / size, 2)}


def one_run(shape: str, size: int, ground: Ground) -> Sample:
    place = ground.folder / f"{shape}-{len(list(ground.folder.iterdir()))}"
    place.mkdir()
    with ground.fresh_store() as store:
        return driver_sample(place, store, "engine", shape, str(size))

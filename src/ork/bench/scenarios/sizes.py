"""Whether a task of a large run costs more than one of a small run: wide (a fan-out and its fan-in) and deep (a chain)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ork.bench.ground import Ground
from ork.bench.measure import Sample, Target, Work, result_of
from ork.bench.sampling import driver_sample
from ork.bench.scale import Scale
from ork.model.record import replaced

FLOOR = "as many tasks at the CPU time of one in the smallest run, measured just before"


def wide(scale: Scale, ground: Ground) -> list[dict[str, Any]]:
    return series("wide", scale.wide, ground)


def deep(scale: Scale, ground: Ground) -> list[dict[str, Any]]:
    return series("deep", scale.deep, ground)


def series(shape: str, sizes: Sequence[int], ground: Ground) -> list[dict[str, Any]]:
    """The engine alone, by the size of the run; linear growth has a ratio of one."""
    return [result_of_size(shape, size, sizes[0], ground) for size in sizes]


def result_of_size(shape: str, size: int, smallest: int, ground: Ground) -> dict[str, Any]:
    """The ratio is that of CPU time: so small a difference would be lost in what else a machine does."""
    small, large = one_run(shape, smallest, ground), one_run(shape, size, ground)
    growth = (large.cpu_seconds or 0.0) / size / ((small.cpu_seconds or 1.0) / smallest)
    work = Work(f"{shape}-{ground.store}", size, FLOOR, (Target(1.5, at_most=True),))
    result = result_of(work, [replaced(large, floor_seconds=large.seconds / growth)])
    return result | {"size": size, "kb_each": round((large.rss_growth_mb or 0.0) * 1024 / size, 2)}


def one_run(shape: str, size: int, ground: Ground) -> Sample:
    place = ground.folder / f"{shape}-{len(list(ground.folder.iterdir()))}"
    place.mkdir()
    with ground.fresh_store() as store:
        return driver_sample(place, store, "engine", shape, str(size))

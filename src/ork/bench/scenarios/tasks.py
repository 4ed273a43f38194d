"""Measures whole workflows of tiny tasks, run by the real scheduler in real processes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ork.bench import workloads
from ork.bench.ground import Ground
from ork.bench.measure import ResultTarget, Work, result_of
from ork.bench.processes import lean_floor
from ork.bench.sampling import driver_sample, interleaved
from ork.bench.scale import Scale

Result = dict[str, Any]

CHAIN_FLOOR = "a fork from a bare process, the protocol's files and two commits for each task, no engine"
FORK_FLOOR = "forks from a bare process and the protocol's files, commits shared by those side by side, no engine"
SPAWN_FLOOR = (
    "posix_spawn of `true` from a bare process, commits shared likewise, none of the protocol's files, no engine"
)
REUSED_FLOOR = (
    "a process for each processor, tasks and answers through pipes, commits shared likewise, no files, no engine"
)


def chain(scale: Scale, ground: Ground) -> list[Result]:
    work = Work("chain", scale.chain, CHAIN_FLOOR, (ResultTarget(2.1, at_most=True),))
    return [driven(work, scale, ground, "chain", workloads.chain)]


def fanout(scale: Scale, ground: Ground) -> list[Result]:
    interpreters = lean_floor("interpreters", scale.fanout, ground.folder)
    more = {"new_interpreters_per_second": round(scale.fanout / interpreters, 1)}
    work = Work("fanout", scale.fanout, FORK_FLOOR, (ResultTarget(0.5),), rate=True, more_floors=more)
    return [driven(work, scale, ground, "fanout", workloads.python_fanout)]


def commands(scale: Scale, ground: Ground) -> list[Result]:
    work = Work("commands", scale.fanout, SPAWN_FLOOR, (ResultTarget(0.6),), rate=True)
    return [driven(work, scale, ground, "commands", workloads.command_fanout)]


def shared(scale: Scale, ground: Ground) -> list[Result]:
    work = Work("shared", scale.shared, REUSED_FLOOR, (ResultTarget(0.3),), rate=True)
    return [driven(work, scale, ground, "shared", workloads.shared_fanout)]


def driven(work: Work, scale: Scale, ground: Ground, floor: str, prepare: Callable[[Path, int], Path]) -> Result:
    """Samples of a whole workflow, run by the real scheduler in its own process and store."""

    def measure(number: int) -> Any:
        place = prepare(ground.folder / f"{work.scenario}-{number}", work.tasks)
        with ground.fresh_store() as store:
            return driver_sample(place, store, "workflow", str(place / "workflow.yaml"))

    return result_of(work, interleaved(scale.repeats, lambda: lean_floor(floor, work.tasks, ground.folder), measure))

"""The named scenarios. Each measures its floor right beside every sample and returns its results as JSON data."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ork.bench import idle, workloads
from ork.bench.measure import Sample, Target, TaskTimes, Work, result_of
from ork.bench.processes import ORK, lean_floor, run
from ork.model.record import Record

Result = dict[str, Any]

CHAIN_FLOOR = "a fork from a bare process, the protocol's files and two commits for each task, no engine"
FORK_FLOOR = "forks from a bare process and the protocol's files, commits shared by those side by side, no engine"
SPAWN_FLOOR = (
    "posix_spawn of `true` from a bare process, commits shared likewise, none of the protocol's files, no engine"
)
ROWS_FLOOR = "the same rows written by executemany, a hundred tasks to a transaction"
PYTHON_FLOOR = "`python -c pass`"


class Scale(Record):
    """How much of everything: `quick` looks, the named scenarios measure."""

    repeats: int
    chain: int
    fanout: int
    engine: int
    cold_repeats: int
    idle_seconds: float


QUICK = Scale(repeats=1, chain=10, fanout=60, engine=2_000, cold_repeats=3, idle_seconds=2)
FULL = Scale(repeats=5, chain=40, fanout=500, engine=10_000, cold_repeats=11, idle_seconds=30)


def chain(scale: Scale, folder: Path) -> list[Result]:
    work = Work("chain", scale.chain, CHAIN_FLOOR, Target(1.7, at_most=True))
    return [driven(work, scale, folder, "chain", lambda place: workloads.chain(place, scale.chain))]


def fanout(scale: Scale, folder: Path) -> list[Result]:
    count = scale.fanout
    interpreters = lean_floor("interpreters", count, folder)
    more = {"new_interpreters_per_second": round(count / interpreters, 1)}
    python = Work("fanout-python", count, FORK_FLOOR, Target(0.75), rate=True, more_floors=more)
    command = Work("fanout-command", count, SPAWN_FLOOR, Target(0.6), rate=True)
    return [
        driven(python, scale, folder, "fanout", lambda place: workloads.python_fanout(place, count)),
        driven(command, scale, folder, "commands", lambda place: workloads.command_fanout(place, count)),
    ]


def engine(scale: Scale, folder: Path) -> list[Result]:
    count = scale.engine
    work = Work("engine", count, ROWS_FLOOR, Target(10_000, field="tasks_per_second"), rate=True)
    samples = []
    for number in range(scale.repeats):
        floor = lean_floor("engine", count, folder)
        place = folder / f"engine-{number}"
        place.mkdir()
        samples.append(driver_sample("engine", str(count), place, floor))
    return [result_of(work, samples)]


def cold(scale: Scale, folder: Path) -> list[Result]:
    """Wall time from the shell, alternating with a bare interpreter."""
    place = workloads.hello(folder / "hello")
    help_work = Work("cold-help", 0, PYTHON_FLOOR, Target(5, at_most=True))
    run_work = Work("cold-run", 1, PYTHON_FLOOR, Target(18, at_most=True))
    helps, runs = [], []
    run((*ORK, "run", "workflow.yaml"), place)  # makes the store, and the bytecode of what is imported
    for _ in range(scale.cold_repeats):
        floor = run((sys.executable, "-c", "pass"), place).seconds
        helps.append(cold_sample((*ORK, "--help"), place, floor))
        runs.append(cold_sample((*ORK, "run", "workflow.yaml"), place, floor))
    return [result_of(run_work, runs), result_of(help_work, helps)]


def idle_scheduler(scale: Scale, folder: Path) -> list[Result]:
    place = workloads.hello(folder / "idle")
    return [idle.result_of_watching(place, scale.idle_seconds)]


SCENARIOS: dict[str, Callable[[Scale, Path], list[Result]]] = {
    "chain": chain,
    "fanout": fanout,
    "engine": engine,
    "cold": cold,
    "idle": idle_scheduler,
}


def driven(work: Work, scale: Scale, folder: Path, floor: str, prepare: Callable[[Path], Path]) -> Result:
    """Samples of a whole workflow run by the real scheduler in a process of its own."""
    samples = []
    for number in range(scale.repeats):
        floor_seconds = lean_floor(floor, work.tasks, folder)
        place = prepare(folder / f"{work.scenario}-{number}")
        samples.append(driver_sample("workflow", str(place / "workflow.yaml"), place, floor_seconds))
    return result_of(work, samples)


def driver_sample(kind: str, argument: str, folder: Path, floor_seconds: float) -> Sample:
    ended = run((sys.executable, "-m", "ork.bench.drive", kind, argument), folder)
    measured = json.loads(ended.stdout)
    return Sample(
        measured["seconds"],
        floor_seconds,
        measured["cpu_s"],
        measured["rss_mb"],
        measured["statements"],
        tuple(TaskTimes(*times) for times in measured["tasks"]),
    )


def cold_sample(argv: tuple[str, ...], folder: Path, floor_seconds: float) -> Sample:
    ended = run(argv, folder)
    return Sample(ended.seconds, floor_seconds, ended.cpu_seconds, ended.rss_mb)

"""Computes results from raw seconds: medians of pairs, so that a busy machine slows down floor and measured work
alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import median
from typing import Any

from ork.model.record import Record, made

PERCENTILES = (50, 95, 99)
STAGES = ("created_dispatched", "dispatched_started", "started_finished")


UNITS = {
    "seconds": " s",
    "added_ms": " ms more",
    "heap_mb": " MB heap",
    "nodes": " nodes",
    "requests": " requests",
    "connections": " connections",
    "streams": " streams",
    "elsewhere": " requests elsewhere",
    "redraw_ms": " ms to redraw, p95",
    "first_kb": " KB of scripts, first page",
    "scripts_kb": " KB of scripts, all",
    "styles_kb": " KB of styles",
    "tasks_per_second": "/s",
    "latency_ms": " ms",
    "costs_ms": " ms",
    "own_ms": " ms each",
    "rss_mb": " MB",
    "kb_each": " KB each",
    "cpu_s": " s",
}


class ResultTarget(Record):
    """The target for one field of a result: at most or at least a value. `part` names one percentile of several."""

    limit: float
    at_most: bool = False
    field: str = "ratio"
    part: str | None = None

    def is_met(self, result: dict[str, Any]) -> bool:
        value = self.value_in(result)
        return value is not None and bool(value <= self.limit if self.at_most else value >= self.limit)

    def value_in(self, result: dict[str, Any]) -> float | None:
        value: float | None = result[self.field] if self.part is None else result[self.field][self.part]
        return value

    def __str__(self) -> str:
        what = "" if self.part is None else f"{self.part.removesuffix('_ms')} "
        return f"{what}{'≤' if self.at_most else '≥'} {self.limit:,g}{UNITS.get(self.field, '')}"


class TaskSeconds(Record):
    """The times of one task, in seconds since its run was created."""

    dispatched: float
    started: float
    finished: float


class Sample(Record):
    """One execution of the measured work, and one of its floor at the same time."""

    seconds: float
    floor_seconds: float
    cpu_seconds: float | None = None
    rss_mb: float | None = None
    statements: int | None = None
    tasks: tuple[TaskSeconds, ...] = ()
    rss_growth_mb: float | None = None
    loop: dict[str, float] = made(default_factory=dict)  # seconds of each part of the scheduler's steps
    first_seconds: float | None = None  # of the first task of a scheduler, measured before


class Work(Record):
    """The measured work, described by words and numbers that are the same for all samples.

    `rate` selects how the ratio is computed: tasks per second relative to the floor, instead of seconds relative to the
    floor. `latency` is the value that a single task is judged by.
    """

    scenario: str
    tasks: int
    floor: str
    targets: tuple[ResultTarget, ...] = ()
    rate: bool = False
    more_floors: dict[str, Any] = made(default_factory=dict)
    latency: Callable[[TaskSeconds], float] = lambda task: task.finished - task.dispatched


def result_of(work: Work, samples: Sequence[Sample]) -> dict[str, Any]:
    """The JSON shape of one measurement."""
    seconds = median(one.seconds for one in samples)
    ratios = sorted(ratio_of(work, one) for one in samples)
    tasks = [task for one in samples for task in one.tasks]
    result = {
        "scenario": work.scenario,
        "tasks": work.tasks,
        "tasks_per_second": per_second(work.tasks, seconds),
        "seconds": round(seconds, 6),
        "latency_ms": latencies(map(work.latency, tasks)),
        "stages_ms": stages(tasks),
        "rss_mb": middle(one.rss_mb for one in samples),
        "rss_growth_mb": middle(one.rss_growth_mb for one in samples),
        "loop_s": {part: middle(one.loop.get(part) for one in samples) for part in samples[0].loop},
        "cpu_s": middle(one.cpu_seconds for one in samples),
        "statements": middle(one.statements for one in samples),
        "first_s": middle(one.first_seconds for one in samples),
        "floor": floor_of(work, samples),
        "ratio": round(median(ratios), 3),
        "ratio_range": [round(ratios[0], 3), round(ratios[-1], 3)],
        "higher_is_better": work.rate,
        "repeats": len(samples),
    }
    return result | judged(work.targets, result)


def one_result(scenario: str, floor: dict[str, Any], targets: Sequence[ResultTarget], **known: Any) -> dict[str, Any]:
    """The same JSON for a single measurement; missing fields are null."""
    nothing = {
        "scenario": scenario,
        "tasks": 0,
        "tasks_per_second": None,
        "seconds": None,
        "latency_ms": latencies(()),
        "stages_ms": None,
        "rss_mb": None,
        "cpu_s": None,
        "statements": None,
        "floor": {"seconds": None, "tasks_per_second": None} | floor,
        "ratio": None,
        "ratio_range": None,
        "higher_is_better": False,
        "repeats": 1,
    }
    result = nothing | known
    return result | judged(targets, result)


def judged(targets: Sequence[ResultTarget], result: dict[str, Any]) -> dict[str, Any]:
    if not targets:
        return {"target": None, "target_met": None, "gates": []}
    gates = [{"value": each.value_in(result), "gate": str(each), "is_met": each.is_met(result)} for each in targets]
    return {
        "target": ", ".join(map(str, targets)),
        "target_met": all(gate["is_met"] for gate in gates),
        "gates": gates,
    }


def ratio_of(work: Work, sample: Sample) -> float:
    slower = sample.seconds / sample.floor_seconds
    return 1 / slower if work.rate else slower


def floor_of(work: Work, samples: Sequence[Sample]) -> dict[str, Any]:
    seconds = median(one.floor_seconds for one in samples)
    known = {"what": work.floor, "seconds": round(seconds, 6), "tasks_per_second": per_second(work.tasks, seconds)}
    return known | work.more_floors


def per_second(tasks: int, seconds: float) -> float | None:
    return round(tasks / seconds, 1) if tasks and seconds else None


def stages(tasks: Sequence[TaskSeconds]) -> dict[str, dict[str, float | None]] | None:
    """The parts of a task's time; None if no task was measured."""
    if not tasks:
        return None
    lengths = (
        (task.dispatched for task in tasks),
        (task.started - task.dispatched for task in tasks),
        (task.finished - task.started for task in tasks),
    )
    return {name: latencies(values) for name, values in zip(STAGES, lengths, strict=True)}


def latencies(seconds: Iterable[float]) -> dict[str, float | None]:
    values = sorted(seconds)
    return {f"p{share}": round(percentile(values, share) * 1000, 3) if values else None for share in PERCENTILES}


def percentile(ordered: Sequence[float], share: int) -> float:
    """The smallest value that at least `share` percent of all do not exceed."""
    rank = -(-len(ordered) * share // 100)
    return ordered[max(rank, 1) - 1]


def middle(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(median(known), 4) if known else None

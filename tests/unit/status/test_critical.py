from __future__ import annotations

from ork.model.task import TaskStatus
from ork.model.workflow import Command, Const, TaskSpec
from ork.state.records import TaskTimes
from ork.status.critical import critical_path


def test_the_path_follows_the_upstream_task_that_ended_last() -> None:
    specs = [spec("a"), spec("b"), spec("c", "a", "b")]
    path = critical_path(specs, [ran("a", 0, 10), ran("b", 0, 30), ran("c", 31, 40)], 0)
    assert [(step.name, step.waited, step.saves) for step in path] == [("b", 0, 20), ("c", 1, 9)]


def test_the_path_passes_through_skipped_tasks() -> None:
    specs = [spec("extract"), spec("load", "extract"), spec("publish", "load"), spec("tidy", "publish")]
    rows = [ran("extract", 0, 10), ran("load", 11, 90), skipped("publish"), ran("tidy", 92, 95)]
    assert [step.name for step in critical_path(specs, rows, 0)] == ["extract", "load", "tidy"]


def test_a_skipped_end_does_not_end_the_path() -> None:
    specs = [spec("a"), spec("b", "a"), spec("c", "b")]
    assert [step.name for step in critical_path(specs, [ran("a", 0, 5), skipped("b"), skipped("c")], 0)] == ["a"]
    assert critical_path(specs, [skipped("a")], 0) == []


def spec(name: str, *upstream: str) -> TaskSpec:
    return TaskSpec(name, "process", Command((Const("true"),)), depends_on=upstream)


def ran(name: str, start: int, end: int) -> TaskTimes:
    return TaskTimes(name, None, TaskStatus.SUCCESS, 1, start, start, end)


def skipped(name: str) -> TaskTimes:
    return TaskTimes(name, None, TaskStatus.SKIPPED, 0, None, None, None)

"""The critical path of a run: the chain of tasks that decided when it ended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ork.model.workflow import TaskSpec
from ork.state.records import TaskTimes


class PathStep(NamedTuple):
    """A task of the path. Times are milliseconds since 1970. `waited` is from the end of the step before (or from the
    start of the run) to its start; `saves` is by how much the step after it could have started earlier without it."""

    name: str
    started: int
    finished: int
    waited: int
    saves: int


def critical_path(specs: Sequence[TaskSpec], times: Iterable[TaskTimes], start: int) -> list[PathStep]:
    """Walks back from the task that ended last, each time to the upstream task that ended last. First step first.

    `times` are the tasks' own rows; a fan-out lasts from its first instance to its last. A task that was skipped has no
    times: the path passes through it to the tasks before."""
    ended = {row.name: row for row in times if row.started is not None and row.finished is not None}
    upstream = {spec.name: spec.depends_on for spec in specs}
    rivals: Iterable[str] = ended
    path: list[PathStep] = []
    while (name := _last(ended, rivals)) is not None and all(name != step.name for step in path):
        others = [ended[other].finished or 0 for other in rivals if other != name]
        path.append(_step(ended[name], max(others, default=start)))
        rivals = _ended_upstream(name, upstream, ended)
    path.reverse()
    return [
        step._replace(waited=max(0, step.started - (path[place - 1].finished if place else start)))
        for place, step in enumerate(path)
    ]


def _ended_upstream(name: str, upstream: Mapping[str, Sequence[str]], ended: Mapping[str, TaskTimes]) -> list[str]:
    """The nearest tasks before a task that have times."""
    found: list[str] = []
    seen, waiting = set[str](), list(upstream.get(name, ()))
    while waiting:
        other = waiting.pop()
        if other in seen:
            continue
        seen.add(other)
        if other in ended:
            found.append(other)
        else:
            waiting.extend(upstream.get(other, ()))
    return found


def _last(ended: Mapping[str, TaskTimes], names: Iterable[str]) -> str | None:
    return max(names, key=lambda name: ended[name].finished or 0, default=None)


def _step(row: TaskTimes, next_best: int) -> PathStep:
    assert row.started is not None
    assert row.finished is not None
    return PathStep(row.name, row.started, row.finished, 0, max(0, row.finished - max(row.started, next_best)))

"""Compares two runs: their fields and tasks, their definitions, and the logs of tasks that ended differently. Of large runs only
the tasks that ended differently are read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from ork.errors import DocumentError, ObjectsError
from ork.model.ids import AttemptKey, RunId, TaskKey
from ork.model.run import Run, RunStatus
from ork.model.task import StoredOutput, TaskStatus
from ork.objects.attempt_documents import AttemptDocuments
from ork.objects.calls import in_thread
from ork.state.reading import StateReader
from ork.state.records import RunFilter, TaskFilter
from ork.status.diff import Difference, diff_code, diff_runs, diff_workflows
from ork.status.run_view import RunView, open_view
from ork.status.secret_masking import masked_output

MOST_FAILED = 50
"""Of a large run so many failed tasks are compared, and so many tasks with another status."""
MOST_LOGS = 20
LOG_BYTES = 1 << 20
LINE_SHOWN = 500
_FAILED = frozenset({TaskStatus.FAILED})
# What differs between any two runs: dates, times of day, durations, ids.
_ALWAYS_DIFFERENT = re.compile(
    r"\d{4}-\d\d-\d\d|\d\d:\d\d(:\d\d)?([.,]\d+)?(Z|[+-]\d\d:?\d\d)?|\d+(\.\d+)? ?(ms|s|seconds)\b"
    r"|\b(?=[a-z-]*\d)[0-9a-f]{8,}(-[0-9a-f]{4,})*\b"
)


class Bounds(NamedTuple):
    """`tasks`: runs with more tasks are compared in part; None: never. Larger outputs are compared by size."""

    tasks: int | None = None
    output_bytes: int = 16 << 20


async def compare_runs(store: StateReader, objects: AttemptDocuments, a: RunId, b: RunId, bounds: Bounds) -> Difference:
    """The differences as `diff_runs` returns them, with `definition`, a `log` for some tasks, and `partial`."""
    is_partial = bounds.tasks is not None and max([await _size(store, run) for run in (a, b)]) > bounds.tasks
    if is_partial:
        one, other = await _different_tasks(store, a, b)
    else:
        (one, _), (other, _) = await open_view(store, a), await open_view(store, b)
    found = await in_thread(_difference, objects, one, other, bounds.output_bytes)
    return {**found, "partial": is_partial}


async def previous_success(store: StateReader, run: Run) -> Run | None:
    """The newest successful run of the workflow that was created before this one."""
    query = RunFilter(run.workflow, frozenset({RunStatus.SUCCESS}), 1, created_before=run.created_at)
    return next(iter((await store.list_runs(query)).runs), None)


async def _size(store: StateReader, run: RunId) -> int:
    return sum(each.number for each in await store.count_tasks(run))


async def _different_tasks(store: StateReader, a: RunId, b: RunId) -> tuple[RunView, RunView]:
    """Views with the first failed tasks of each run and the tasks whose statuses differ, each in both runs."""
    views = [(await open_view(store, run, TaskFilter(statuses=_FAILED, limit=MOST_FAILED)))[0] for run in (a, b)]
    one, other = [
        {each.name: each.status for each in await store.count_tasks(run) if not each.is_instance} for run in (a, b)
    ]
    names = [name for name in {**one, **other} if one.get(name) != other.get(name)][:MOST_FAILED]
    wanted = dict.fromkeys([*(key for view in views for key in view.tasks), *map(TaskKey, names)])
    for view in views:
        for key in wanted:
            await _add(store, view, key)
    return views[0], views[1]


async def _add(store: StateReader, view: RunView, key: TaskKey) -> None:
    """Adds the task to the view, if the run has it."""
    if key in view.tasks or key.name not in view.specs:
        return
    before = None if key.index is None else TaskKey(key.name, key.index - 1 if key.index else None)
    update = await store.run_updates(view.run.id, None, TaskFilter(key.name, after=before, limit=1))
    if update is not None:
        view.apply(update._replace(tasks=tuple(task for task in update.tasks if task.key == key)))


def _difference(objects: AttemptDocuments, one: RunView, other: RunView, output_bytes: int) -> Difference:
    def read(output: StoredOutput) -> bytes | None:
        if output.size > output_bytes:
            return f"{output.size} bytes".encode()
        (data,) = objects.read_values([output.key], output_bytes)
        if isinstance(data, DocumentError):
            return f"{output.size} bytes".encode()
        if isinstance(data, ObjectsError):
            raise data
        return None if data is None else masked_output(other.hidden, masked_output(one.hidden, data))

    found = diff_runs(one.run, one.tasks.values(), other.run, other.tasks.values(), read)
    is_same = one.run.version == other.run.version
    found["definition"] = None if is_same else diff_workflows(one.version.workflow, other.version.workflow)
    found["code"] = diff_code(one.version.code, other.version.code)
    ended = [row for row in found["tasks"] if "status" in row or "error" in row]
    for row in ended[:MOST_LOGS]:
        row["log"] = _log_difference(objects, one, other, TaskKey(row["name"], row["index"]))
    return found


def _log_difference(objects: AttemptDocuments, one: RunView, other: RunView, key: TaskKey) -> dict[str, Any] | None:
    """The first line that differs in the beginnings of both logs, apart from times and ids; None if there is none."""
    tasks = [view.tasks.get(key) for view in (one, other)]
    if any(task is None or task.attempt == 0 for task in tasks):
        return None
    logs = [
        _lines(objects, AttemptKey(view.run.id, key, task.attempt))
        for view, task in zip((one, other), tasks, strict=True)
        if task is not None
    ]
    ids = (one.run.id, other.run.id)
    for number, (a, b) in enumerate(_pairs(*logs), 1):
        if a != b and (a is None or b is None or _plain(a, ids[0]) != _plain(b, ids[1])):
            return {"line": number, "a": a and a[:LINE_SHOWN], "b": b and b[:LINE_SHOWN]}
    return None


def _lines(objects: AttemptDocuments, attempt: AttemptKey) -> tuple[list[str], bool]:
    """The first lines of a log, and whether they are all."""
    data = objects.read_log(str(attempt), 0, LOG_BYTES)
    is_whole = len(data) < LOG_BYTES
    lines = data.decode("utf-8", "replace").split("\n")
    return (lines[:-1] if not is_whole or not lines[-1] else lines), is_whole


def _pairs(a: tuple[list[str], bool], b: tuple[list[str], bool]) -> Iterator[tuple[str | None, str | None]]:
    """Lines of the same number; None for a log that has ended."""
    for number in range(max(len(a[0]), len(b[0]))):
        pair = [lines[number] if number < len(lines) else None for lines, _ in (a, b)]
        if any(line is None and not is_whole for line, (_, is_whole) in zip(pair, (a, b), strict=True)):
            return
        yield pair[0], pair[1]


def _plain(line: str, run: RunId) -> str:
    return _ALWAYS_DIFFERENT.sub("", line.replace(run, ""))

"""The statuses and times of all tasks of a run as columns: a run of 100,000 tasks is a few megabytes of numbers.

Pages are read from the store one after the other and encoded in a thread, so neither the store nor the event loop is held
for long.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from ork.model.ids import RunId
from ork.model.run import Run
from ork.model.task import AttemptStatus, TaskStatus
from ork.objects.calls import in_thread
from ork.state.reading import StateReader
from ork.state.records import TaskFilter, TaskTimes
from ork.status.run_view import version_of

PAGE = 5000
NAMES = ("task", "index", "status", "attempt", "queued", "wait", "ran")
STATUSES = tuple(dict.fromkeys(status.value for kind in (TaskStatus, AttemptStatus) for status in kind))
_STATUS_NUMBER = {status: number for number, status in enumerate(STATUSES)}


async def run_columns(store: StateReader, run: RunId, since: str | None = None) -> list[bytes] | None:
    """The JSON document, in pieces; None if the run does not exist. With a mark, only tasks that changed after it.

    The mark is read first: what changes while the pages are read is sent again for the next `since`.
    """
    update = await store.run_updates(run, since, TaskFilter(limit=0))
    if update is None:
        return None
    version = await version_of(store, update.run)
    names = {spec.name: place for place, spec in enumerate(version.workflow.tasks)}
    tasks, earlier = _Columns(update.run, names), _Columns(update.run, names)
    after, is_last = None, since is not None and since == update.mark
    while not is_last:
        page = await store.task_times(run, since, after=after, limit=PAGE)
        await in_thread(_add, tasks, page.tasks, earlier, page.earlier)
        after, is_last = page.last, page.last is None
    head = {
        "run": run,
        "status": update.run.status.value,
        "start": start_of(update.run),
        "mark": update.mark,
        "names": list(names),
        "statuses": STATUSES,
    }
    return await in_thread(_document, head, tasks, earlier)


def start_of(run: Run) -> int:
    """The time from which columns count, in milliseconds since 1970."""
    return int((run.started_at or run.created_at).timestamp() * 1000)


class _Columns:
    """Columns as JSON text, page by page."""

    def __init__(self, run: Run, names: dict[str, int]) -> None:
        self._start = start_of(run)
        self._names = names  # of a run whose version cannot be read, they are added as they come
        self._parts: dict[str, list[str]] = {name: [] for name in NAMES}

    def add(self, rows: Sequence[TaskTimes]) -> None:
        if not rows:
            return
        columns = zip(*(self._row(row) for row in rows), strict=True)
        for name, column in zip(NAMES, columns, strict=True):
            self._parts[name].append(",".join(map(_number, column)))

    def _row(self, row: TaskTimes) -> tuple[int | None, ...]:
        # A pending task may have times of an attempt that is among the earlier ones.
        dispatched = None if row.status is TaskStatus.PENDING else row.dispatched
        queued = None if dispatched is None else dispatched - self._start
        started = row.started if dispatched is not None else None
        return (
            self._names.setdefault(row.name, len(self._names)),
            row.instance,
            _STATUS_NUMBER[row.status],
            row.attempt,
            queued,
            _between(dispatched, started),
            _between(started, row.finished),
        )

    def pieces(self) -> Iterator[str]:
        for place, name in enumerate(NAMES):
            yield f'{"," if place else "{"}"{name}":['
            yield ",".join(self._parts[name])
            yield "]"
        yield "}"


def _add(tasks: _Columns, task_rows: Sequence[TaskTimes], earlier: _Columns, earlier_rows: Sequence[TaskTimes]) -> None:
    tasks.add(task_rows)
    earlier.add(earlier_rows)


def _document(head: dict[str, Any], tasks: _Columns, earlier: _Columns) -> list[bytes]:
    text = (json.dumps(head, separators=(",", ":"))[:-1], ',"tasks":', *tasks.pieces(), ',"earlier":')
    return [piece.encode() for piece in (*text, *earlier.pieces(), "}")]


def _between(first: int | None, last: int | None) -> int | None:
    return None if first is None or last is None else last - first


def _number(value: int | None) -> str:
    return "null" if value is None else str(value)

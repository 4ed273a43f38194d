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
from ork.state.records import TaskFilter, TimeColumns
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

    def add(self, rows: TimeColumns) -> None:
        if not rows.name:
            return
        for name in dict.fromkeys(rows.name):
            self._names.setdefault(name, len(self._names))
        dispatched, started = rows.dispatched, rows.started
        if TaskStatus.PENDING in rows.status:
            # A pending task may have times of an attempt that is among the earlier ones.
            dispatched = [
                None if status is TaskStatus.PENDING else time
                for time, status in zip(dispatched, rows.status, strict=True)
            ]
        started = [None if first is None else time for first, time in zip(dispatched, started, strict=True)]
        columns: tuple[Sequence[int | None], ...] = (
            [self._names[name] for name in rows.name],
            rows.instance,
            [_STATUS_NUMBER[status] for status in rows.status],
            rows.attempt,
            [None if time is None else time - self._start for time in dispatched],
            _between(dispatched, started),
            _between(started, rows.finished),
        )
        for name, column in zip(NAMES, columns, strict=True):
            self._parts[name].append(json.dumps(column, separators=(",", ":"))[1:-1])

    def pieces(self) -> Iterator[str]:
        for place, name in enumerate(NAMES):
            yield f'{"," if place else "{"}"{name}":['
            yield ",".join(self._parts[name])
            yield "]"
        yield "}"


def _add(tasks: _Columns, task_rows: TimeColumns, earlier: _Columns, earlier_rows: TimeColumns) -> None:
    tasks.add(task_rows)
    earlier.add(earlier_rows)


def _document(head: dict[str, Any], tasks: _Columns, earlier: _Columns) -> list[bytes]:
    text = (json.dumps(head, separators=(",", ":"))[:-1], ',"tasks":', *tasks.pieces(), ',"earlier":')
    return [piece.encode() for piece in (*text, *earlier.pieces(), "}")]


def _between(firsts: Sequence[int | None], lasts: Sequence[int | None]) -> list[int | None]:
    return [None if first is None or last is None else last - first for first, last in zip(firsts, lasts, strict=True)]

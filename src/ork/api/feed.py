"""Reads changes once for all event streams: streams that continue after the same mark share a batch and its JSON."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Coroutine, Iterable
from typing import Any

from ork.api.events import Hub
from ork.api.paging import PAGE_BYTES
from ork.model.ids import RunId
from ork.model.run import Run
from ork.model.task import Task
from ork.state.reading import StateReader
from ork.state.records import TaskFilter
from ork.status.run_view import version_of
from ork.status.secret_masking import hidden_params, mask_params, mask_secrets_of
from ork.status.shapes import listed_run_json, task_row
from ork.status.summary import total_counts

PAGE = 100
MAX_TASKS = 500
KEPT_BATCHES = 8
SHORTEST_PAUSE, LONGEST_PAUSE = 0.2, 2.0
_SHARE = 10  # streams use at most one part in ten of the store's time


class ChangeBatch:
    """The runs that changed after a mark. The JSON of each is made when the first stream needs it."""

    def __init__(self, store: StateReader, before: str, mark: str, runs: tuple[Run, ...]) -> None:
        self._store = store
        self._before = before
        self._texts: dict[tuple[RunId, bool], asyncio.Task[str]] = {}
        self._seconds = 0.0
        self.mark = mark
        self.runs = runs

    async def text(self, run: Run, with_tasks: bool) -> str:
        """The data of the run's event: its changed tasks, or its counts."""
        key = (run.id, with_tasks)
        if key not in self._texts:
            made = self._with_tasks(run) if with_tasks else self._with_counts(run)
            self._texts[key] = asyncio.create_task(self._timed(made))
        return await asyncio.shield(self._texts[key])

    @property
    def pause(self) -> float:
        """Seconds until the next batch. A batch that took long, because its runs are large, is followed by a longer one."""
        return min(max(SHORTEST_PAUSE, _SHARE * self._seconds), LONGEST_PAUSE) if len(self.runs) < PAGE else 0.0

    async def _timed(self, made: Coroutine[Any, Any, str]) -> str:
        start = time.monotonic()
        try:
            return await made
        finally:
            self._seconds += time.monotonic() - start

    async def _with_counts(self, run: Run) -> str:
        totals = total_counts(await self._store.count_tasks(run.id))
        counts = {status.value: number for status, number in totals.items() if number}
        return json.dumps({"run": listed_run_json(run), "counts": counts})

    async def _with_tasks(self, run: Run) -> str:
        update = await self._store.run_updates(run.id, self._before, TaskFilter(limit=MAX_TASKS + 1))
        if update is None:
            return json.dumps({"run": listed_run_json(run), "tasks": [], "more": False})
        version = await version_of(self._store, run)
        mask_secrets_of(version.workflow)
        update = mask_params(await hidden_params(self._store, update.run), update)
        needs = {spec.name: spec.depends_on for spec in version.workflow.tasks}
        rows = await asyncio.to_thread(_encoded, update.tasks[:MAX_TASKS], needs)
        more = json.dumps(len(update.tasks) > len(rows))
        return f'{{"run":{json.dumps(listed_run_json(update.run))},"tasks":[{",".join(rows)}],"more":{more}}}'


def _encoded(tasks: Iterable[Task], needs: dict[str, tuple[str, ...]]) -> list[str]:
    """The first tasks that fit into an event, at least one, each as JSON: one long call would hold the GIL."""
    rows: list[str] = []
    size = 0
    for task in tasks:
        text = json.dumps(task_row(task, needs.get(task.key.name, ())))
        size += len(text)
        if rows and size > PAGE_BYTES:
            break
        rows.append(text)
    return rows


class ChangeFeed:
    """The last batches, by the mark before them. A batch with runs stays valid: later changes have later marks."""

    def __init__(self, store: StateReader, hub: Hub) -> None:
        self._store = store
        self._hub = hub
        self._batches: dict[str, tuple[int, asyncio.Task[ChangeBatch]]] = {}

    async def after(self, mark: str) -> ChangeBatch:
        """The changes after the mark. A read that another stream began is shared, unless something may have changed
        since it began."""
        known = self._batches.get(mark)
        if known is None or not self._is_current(*known):
            self._batches.pop(mark, None)
            known = self._hub.generation, asyncio.create_task(self._read(mark))
            self._batches[mark] = known
            while len(self._batches) > KEPT_BATCHES:
                del self._batches[next(iter(self._batches))]
        return await asyncio.shield(known[1])

    def _is_current(self, generation: int, batch: asyncio.Task[ChangeBatch]) -> bool:
        if not batch.done():
            return generation == self._hub.generation
        return not batch.cancelled() and batch.exception() is None and bool(batch.result().runs)

    async def _read(self, mark: str) -> ChangeBatch:
        page = await self._store.changes_since(mark, PAGE)
        return ChangeBatch(self._store, mark, page.mark, page.runs)

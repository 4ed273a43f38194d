"""The last runs of a workflow: tasks by runs, and how long tasks take compared with the week before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from ork.model.ids import RunId
from ork.model.run import Run, RunStatus
from ork.model.task import TaskStatus
from ork.state.reading import StateReader
from ork.state.records import RunFilter, TaskCount, TaskTimes
from ork.status.run_view import version_of
from ork.status.shapes import time_json

MOST_RUNS = 50
WEEK = timedelta(days=7)
TIMES_PAGE = 2000
KEPT_RUNS = 2000


class EndedRuns:
    """Remembers counts and times of runs that have ended, which change no more, but for a retry."""

    def __init__(self) -> None:
        self._counts: dict[tuple[RunId, int, datetime | None], tuple[TaskCount, ...]] = {}
        self._times: dict[tuple[RunId, int, datetime | None], dict[str, float]] = {}

    async def counts(self, store: StateReader, run: Run) -> tuple[TaskCount, ...]:
        key = (run.id, run.round, run.finished_at)
        found = self._counts.get(key) or await store.count_tasks(run.id)
        if run.status.is_final:
            _keep(self._counts, key, found)
        return found

    async def seconds(self, store: StateReader, run: Run) -> dict[str, float]:
        """The seconds of each task that succeeded; a fan-out lasts from its first instance to its last."""
        key = (run.id, run.round, run.finished_at)
        found = self._times.get(key)
        if found is None:
            found = {}
            after, is_last = None, False
            while not is_last:
                page = await store.task_times(run.id, after=after, limit=TIMES_PAGE, with_instances=False)
                found |= _seconds_of(page.tasks.rows)
                after, is_last = page.last, page.last is None
            _keep(self._times, key, found)
        return found


def _keep(kept: dict[Any, Any], key: Any, value: Any) -> None:
    kept[key] = value
    while len(kept) > KEPT_RUNS:
        del kept[next(iter(kept))]


def _seconds_of(rows: Iterable[TaskTimes]) -> dict[str, float]:
    return {
        row.name: (row.finished - row.started) / 1000
        for row in rows
        if row.status is TaskStatus.SUCCESS and row.started is not None and row.finished is not None
    }


async def workflow_grid(store: StateReader, ended: EndedRuns, workflow: str, runs: int) -> dict[str, Any]:
    """The last runs, newest first, each with the state of every task: its status, and of a fan-out also how many
    instances failed of how many."""
    page = await store.list_runs(RunFilter(workflow=workflow, limit=runs))
    names: dict[str, None] = {}
    columns = []
    for run in page.runs:
        counts = await ended.counts(store, run)
        if not names:
            names = dict.fromkeys(spec.name for spec in (await version_of(store, run)).workflow.tasks)
        names |= dict.fromkeys(each.name for each in counts)
        columns.append((run, _cells(counts)))
    return {
        "tasks": list(names),
        "runs": [
            {**run_head(run), "version": run.version, "cells": [cells.get(name) for name in names]}
            for run, cells in columns
        ],
    }


def run_head(run: Run) -> dict[str, Any]:
    """A run as one mark on a page."""
    return {
        "id": run.id,
        "status": run.status.value,
        "trigger": run.trigger.value,
        "created_at": time_json(run.created_at),
        "scheduled_for": time_json(run.scheduled_for),
        "seconds": run_seconds(run),
    }


def run_seconds(run: Run) -> float | None:
    if run.started_at is None or run.finished_at is None:
        return None
    return (run.finished_at - run.started_at).total_seconds()


def _cells(counts: tuple[TaskCount, ...]) -> dict[str, dict[str, Any]]:
    cells: dict[str, dict[str, Any]] = {}
    for each in counts:
        cell = cells.setdefault(each.name, {"status": each.status.value, "instances": 0, "failed": 0})
        if each.is_instance:
            cell["instances"] += each.number
            cell["failed"] += each.number if each.status is TaskStatus.FAILED else 0
    return cells


async def workflow_durations(store: StateReader, ended: EndedRuns, workflow: str, now: datetime) -> dict[str, Any]:
    """p50 and p95 of the workflow's successful runs in the last week and of their tasks, and the p50 of the week before.
    Up to 50 runs of each week."""
    weeks = []
    for until in (now, now - WEEK):
        query = RunFilter(workflow, frozenset({RunStatus.SUCCESS}), MOST_RUNS, None, until - WEEK, until)
        weeks.append((await store.list_runs(query)).runs)
    tasks: list[dict[str, list[float]]] = []
    for runs in weeks:
        lengths: dict[str, list[float]] = {}
        for run in runs:
            for name, seconds in (await ended.seconds(store, run)).items():
                lengths.setdefault(name, []).append(seconds)
        tasks.append(lengths)
    of_runs = [[length for run in runs if (length := run_seconds(run)) is not None] for runs in weeks]
    return {
        "runs": _spread(*of_runs),
        "tasks": [{"name": name, **_spread(lengths, tasks[1].get(name, []))} for name, lengths in tasks[0].items()],
    }


def _spread(now: Sequence[float], before: Sequence[float]) -> dict[str, Any]:
    p50, was = percentile(now, 50), percentile(before, 50)
    change = None if p50 is None or not was else p50 / was - 1
    return {"count": len(now), "p50": p50, "p95": percentile(now, 95), "p50_before": was, "change": change}


def percentile(values: Sequence[float], percent: int) -> float | None:
    """The smallest value that at least `percent` of them do not exceed; None of nothing."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)] if ordered else None

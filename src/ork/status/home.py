"""What needs a person: failures since a time, what runs and waits, missed schedules, and how well each workflow is."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from ork.model.run import Run, RunStatus
from ork.model.workflow import WorkflowEntry
from ork.state.reading import StateReader
from ork.state.records import RunFilter, ScheduleEntry
from ork.status.grid import EndedRuns, percentile, run_head, run_seconds
from ork.status.shapes import listed_run_json, time_json
from ork.status.summary import total_counts

MOST_FAILURES = 100
MOST_RUNNING = 50
COUNTED_RUNS = 20
RUNS_OF_EACH = 20
MOST_ALERTS = 20
LATE = timedelta(minutes=1)
_UNFINISHED = frozenset(status for status in RunStatus if not status.is_final)


async def overview(
    store: StateReader, ended: EndedRuns, entries: Sequence[WorkflowEntry], since: datetime, now: datetime
) -> dict[str, Any]:
    """`entries` are the workflows to show. Everything else is bounded; `more_failures` and `more_running` say so."""
    failed = await store.list_runs(RunFilter(None, frozenset({RunStatus.FAILED}), MOST_FAILURES, None, since))
    running = await store.list_runs(RunFilter(None, _UNFINISHED, MOST_RUNNING))
    return {
        "since": time_json(since),
        "now": time_json(now),
        "failures": [listed_run_json(run) for run in failed.runs],
        "more_failures": failed.cursor is not None,
        "running": [await _running(store, ended, run, place < COUNTED_RUNS) for place, run in enumerate(running.runs)],
        "more_running": running.cursor is not None,
        "late": [_late(entry) for entry in await store.list_schedules() if _is_late(entry, now)],
        "unsent_alerts": len(await store.unsent_alerts(MOST_ALERTS)),
        "broken_locations": [
            {"name": entry.name, "code": entry.code, "error": entry.error}
            for entry in await store.list_locations()
            if entry.error is not None
        ],
        "workflows": [await _workflow(store, entry) for entry in entries],
    }


async def _running(store: StateReader, ended: EndedRuns, run: Run, is_counted: bool) -> dict[str, Any]:
    progress = None
    if is_counted:
        totals = total_counts(await ended.counts(store, run))
        done = sum(number for status, number in totals.items() if status.is_final)
        progress = {"done": done, "total": sum(totals.values())}
    return {"run": listed_run_json(run), "progress": progress}


def _is_late(entry: ScheduleEntry, now: datetime) -> bool:
    return entry.enabled and entry.next_fire is not None and entry.next_fire < now - LATE


def _late(entry: ScheduleEntry) -> dict[str, Any]:
    return {"workflow": entry.workflow, "due": time_json(entry.next_fire)}


async def _workflow(store: StateReader, entry: WorkflowEntry) -> dict[str, Any]:
    runs = (await store.list_runs(RunFilter(workflow=entry.name, limit=RUNS_OF_EACH))).runs
    final = [run for run in runs if run.status in (RunStatus.SUCCESS, RunStatus.FAILED)]
    good = [run for run in final if run.status is RunStatus.SUCCESS]
    lengths = [seconds for run in good if (seconds := run_seconds(run)) is not None]
    return {
        "name": entry.name,
        "enabled": entry.enabled,
        "runs": [run_head(run) for run in runs],
        "p50": percentile(lengths, 50),
        "success_rate": len(good) / len(final) if final else None,
    }

"""The times of schedules in a range: past ones with their runs, missed ones, future ones, and notes on clock changes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import islice
from typing import Any, NamedTuple

from ork.core.cron import jitter_of, moved_times, repeated_times, times_between
from ork.errors import OrkError, UnreadableError, UsageError
from ork.model.run import Run
from ork.model.workflow import Schedule, Trigger
from ork.objects.calls import in_thread
from ork.state.reading import StateReader
from ork.state.records import RunFilter, ScheduleEntry
from ork.status.grid import run_head
from ork.status.shapes import time_json

LONGEST = timedelta(days=92)
TIMES_OF_EACH = 1000
MOST_TIMES = 5000
OTHER_RUNS = 1000
VERSIONS_READ = 20
_INSTANT = timedelta(microseconds=1)
_EVER = datetime.min.replace(tzinfo=UTC)
_SCHEDULED = (Trigger.SCHEDULE, Trigger.BACKFILL)


class TimeState(StrEnum):
    """What became of a scheduled time."""

    RUN = "run"  # it has a run
    MISSED = "missed"  # it passed without a run, or its run was deleted
    DUE = "due"  # it has passed, and its run is still to be created
    PLANNED = "planned"  # it is in the future


class Range(NamedTuple):
    """From `start` until before `end`."""

    start: datetime
    end: datetime
    now: datetime


class _Times(NamedTuple):
    """The first times in a range. `until`: times from here on are not among them; None if all are."""

    times: list[datetime]
    until: datetime | None
    notes: list[dict[str, Any]]
    problem: str | None


def check_range(start: datetime, end: datetime) -> None:
    if end <= start:
        raise UsageError("the range is empty: `to` is not after `from`")
    if end - start > LONGEST:
        raise UsageError(f"the range is longer than {LONGEST.days} days", hint="choose a shorter range")


async def calendar(store: StateReader, entries: Sequence[ScheduleEntry], span: Range) -> dict[str, Any]:
    """The times of these schedules. `cursor` is the last workflow that was read if there are too many times for one page."""
    rows: list[dict[str, Any]] = []
    total, cursor = 0, None
    for place, entry in enumerate(entries, 1):
        rows.append(await _workflow(store, entry, span))
        total += len(rows[-1]["times"])
        if total >= MOST_TIMES and place < len(entries):
            cursor = entry.workflow
            break
    return {
        "from": time_json(span.start),
        "to": time_json(span.end),
        "now": time_json(span.now),
        "workflows": rows,
        "partial": cursor is not None or any(row["partial"] for row in rows),
        "cursor": cursor,
    }


async def _workflow(store: StateReader, entry: ScheduleEntry, span: Range) -> dict[str, Any]:
    # Times are computed in a thread: a thousand of them take longer than the event loop may be held.
    found = await in_thread(_times, entry, span)
    runs = await _runs(store, entry, found, span)
    has_gaps = any(time <= span.now and time not in runs for time in found.times)
    since = await _in_effect_since(store, entry) if has_gaps else _EVER
    if found.until is not None and since > span.start:
        found = await in_thread(_times, entry, span._replace(start=min(since, span.end)))
        runs = await _runs(store, entry, found, span)
    covered = span._replace(end=found.until or span.end)
    others, has_more = await _other_runs(store, entry, covered) if since > span.start else ({}, False)
    runs |= others
    own = [time for time in found.times if time >= since]
    shown = [_time_json(time, runs.get(time), _state(entry, time, span.now)) for time in own]
    shown += [_time_json(time, runs[time], TimeState.RUN) for time in runs.keys() - set(own)]
    return {
        "workflow": entry.workflow,
        "cron": entry.schedule.cron,
        "timezone": entry.schedule.timezone,
        "enabled": entry.enabled,
        "times": sorted(shown, key=lambda row: str(row["time"])),
        "partial": found.until is not None or has_more,
        "until": time_json(found.until),
        "notes": found.notes,
        "problem": found.problem,
    }


async def _runs(store: StateReader, entry: ScheduleEntry, found: _Times, span: Range) -> dict[datetime, Run]:
    return dict(await store.find_scheduled(entry.workflow, [time for time in found.times if time <= span.now]))


def _times(entry: ScheduleEntry, span: Range) -> _Times:
    """A disabled schedule has no future times."""
    if entry.unreadable is not None:
        return _Times([], None, [], entry.unreadable)
    end = span.end - _INSTANT if entry.enabled else min(span.end - _INSTANT, span.now)
    try:
        times = list(islice(times_between(entry.schedule, span.start, end), TIMES_OF_EACH + 1))
        until = times.pop() if len(times) > TIMES_OF_EACH else None
        return _Times(times, until, clock_notes(entry.schedule, span.start, until or end), None)
    except OrkError as error:
        return _Times([], None, [], error.message)


def clock_notes(schedule: Schedule, start: datetime, end: datetime) -> list[dict[str, Any]]:
    """The local times in the range that clock changes skip or repeat, and when the schedule fires instead."""
    zone = schedule.timezone
    notes: list[tuple[datetime, str, tuple[datetime, ...]]] = [
        (moved.local, "skipped", (moved.instead,) if moved.instead else ())
        for moved in moved_times(schedule, start, end)
    ]
    notes += [(each.local, "repeated", each.fires) for each in repeated_times(schedule, start, end)]
    return [
        {
            "local": local.isoformat(),
            "kind": kind,
            "fires": [time_json(time) for time in fires],
            "text": skipped_text(local, fires, zone) if kind == "skipped" else _repeated_text(local, fires, zone),
        }
        for local, kind, fires in sorted(notes)
    ]


def skipped_text(local: datetime, fires: Sequence[datetime], zone: str) -> str:
    then = f"at {_local(fires[0], zone)} instead" if fires else "not at all that time"
    return f"there is no {local:%H:%M} on {local:%Y-%m-%d} in {zone}: it fires {then}"


def _repeated_text(local: datetime, fires: Sequence[datetime], zone: str) -> str:
    times = "once" if len(fires) == 1 else f"{len(fires)} times"
    return f"{local:%H:%M} comes twice on {local:%Y-%m-%d} in {zone}: it fires {times}"


def _local(time: datetime, zone: str) -> str:
    from zoneinfo import ZoneInfo

    return f"{time.astimezone(ZoneInfo(zone)):%H:%M}"


def _state(entry: ScheduleEntry, time: datetime, now: datetime) -> TimeState:
    """The state of a time without a run."""
    if time > now:
        return TimeState.PLANNED
    due = None if entry.next_fire is None else entry.next_fire - jitter_of(entry.schedule, entry.workflow)
    return TimeState.DUE if due is not None and time >= due else TimeState.MISSED


def _time_json(time: datetime, run: Run | None, state: TimeState) -> dict[str, Any]:
    state = TimeState.RUN if run is not None else state
    return {"time": time_json(time), "state": state.value, "run": None if run is None else run_head(run)}


async def _in_effect_since(store: StateReader, entry: ScheduleEntry) -> datetime:
    """When the schedule was first deployed as it is now: earlier times are not its own."""
    since = _EVER
    for saved in await store.list_versions(entry.workflow, VERSIONS_READ):
        try:
            version = await store.get_version(saved.id)
        except UnreadableError:
            break
        schedule = version.workflow.schedule if version is not None else None
        if schedule is None or (schedule.cron, schedule.timezone) != (entry.schedule.cron, entry.schedule.timezone):
            break
        since = saved.saved_at or _EVER
    return since


async def _other_runs(store: StateReader, entry: ScheduleEntry, span: Range) -> tuple[dict[datetime, Run], bool]:
    """Runs for times of an earlier schedule, and whether there may be more."""
    query = RunFilter(entry.workflow, limit=OTHER_RUNS, created_after=span.start)
    page = await store.list_runs(query)
    found = {
        run.scheduled_for: run
        for run in page.runs
        if run.trigger in _SCHEDULED and run.scheduled_for and span.start <= run.scheduled_for < span.end
    }
    return found, page.cursor is not None


async def backfill_plan(store: StateReader, workflow: str, times: Sequence[datetime]) -> list[dict[str, Any]]:
    """For each time whether a backfill creates a run, or which run it has."""
    rows: list[dict[str, Any]] = []
    for start in range(0, len(times), TIMES_OF_EACH):
        some = times[start : start + TIMES_OF_EACH]
        runs = await store.find_scheduled(workflow, some)
        rows += [_planned(time, runs.get(time)) for time in some]
    return rows


def _planned(time: datetime, run: Run | None) -> dict[str, Any]:
    if run is None:
        return {"time": time_json(time), "state": "new", "run": None, "status": None}
    return {"time": time_json(time), "state": "exists", "run": run.id, "status": run.status.value}

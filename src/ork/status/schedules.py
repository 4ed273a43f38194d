"""Schedules as shown to people: enabled or disabled, and when they fire next."""

from __future__ import annotations

from datetime import datetime
from itertools import islice
from typing import NamedTuple

from ork.core.cron import fire_times, first_fire, jitter_of
from ork.errors import OrkError
from ork.model.workflow import Version
from ork.state.records import ScheduleEntry
from ork.state.schedules import ScheduleStore


class Upcoming(NamedTuple):
    """`times` is empty if the schedule is disabled; `problem` says why the times cannot be computed."""

    entry: ScheduleEntry
    times: tuple[datetime, ...]
    problem: str | None = None


async def deploy(store: ScheduleStore, version: Version, *, origin: str | None, now: datetime) -> bool:
    """Saves the version. Its schedule takes effect now, even if no scheduler is running."""
    workflow = version.workflow
    next_fire = first_fire(workflow.schedule, workflow.name, now)
    return await store.save_version(version, origin=origin, now=now, next_fire=next_fire)


async def set_schedule_enabled(store: ScheduleStore, workflow: str, enabled: bool, now: datetime) -> bool:
    """Enables or disables a workflow's schedule. False if the workflow is unknown."""
    entry = await store.get_workflow(workflow)
    next_fire = None if entry is None or not enabled else first_fire(entry.schedule, workflow, now)
    return await store.set_enabled(workflow, enabled, next_fire=next_fire)


def upcoming(entry: ScheduleEntry, after: datetime, count: int) -> Upcoming:
    """The next fire times without jitter, beginning with an overdue one."""
    if entry.unreadable is not None:
        return Upcoming(entry, (), entry.unreadable)
    if not entry.enabled:
        return Upcoming(entry, ())
    jitter = jitter_of(entry.schedule, entry.workflow)
    try:
        times = list(islice(fire_times(entry.schedule, after), count))
    except OrkError as error:
        return Upcoming(entry, (), error.message)
    overdue = None if entry.next_fire is None else entry.next_fire - jitter
    if overdue is not None and overdue <= after:
        times = [overdue, *times][:count]
    return Upcoming(entry, tuple(times))

"""Schedules as people see and set them: on or off, and when they fire next."""

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
    """`times` are empty where the schedule is off; `problem` says why nobody can tell them."""

    entry: ScheduleEntry
    times: tuple[datetime, ...]
    problem: str | None = None


async def deploy(store: ScheduleStore, version: Version, *, origin: str | None, now: datetime) -> bool:
    """Saves the version; its schedule counts from now on, whether or not a scheduler is there to see it."""
    workflow = version.workflow
    next_fire = first_fire(workflow.schedule, workflow.name, now)
    return await store.save_version(version, origin=origin, now=now, next_fire=next_fire)


async def switch(store: ScheduleStore, workflow: str, enabled: bool, now: datetime) -> bool:
    """Turns a workflow's schedule on or off. False if unknown."""
    entry = await store.get_workflow(workflow)
    next_fire = None if entry is None or not enabled else first_fire(entry.schedule, workflow, now)
    return await store.set_enabled(workflow, enabled, next_fire=next_fire)


def upcoming(entry: ScheduleEntry, after: datetime, count: int) -> Upcoming:
    """The next times without jitter; a time that is overdue comes first."""
    if entry.unreadable is not None:
        return Upcoming(entry, (), entry.unreadable)
    if not entry.enabled:
        return Upcoming(entry, ())
    jitter = jitter_of(entry.schedule, entry.workflow)
    try:
        times = list(islice(fire_times(entry.schedule, after), count))
    except OrkError as error:
        return Upcoming(entry, (), error.message)
    owed = None if entry.next_fire is None else entry.next_fire - jitter
    if owed is not None and owed <= after:
        times = [owed, *times][:count]
    return Upcoming(entry, tuple(times))

"""When a tick has work to do, determined with a few reads and without registering a scheduler."""

from __future__ import annotations

from datetime import datetime

from ork.core.cron import first_fire
from ork.errors import UsageError
from ork.model.installation import control_for
from ork.state.records import LookAhead, ScheduleEntry
from ork.state.schedules import ScheduleStore


async def next_due(store: ScheduleStore, ahead: LookAhead, host: str, now: datetime) -> datetime | None:
    """When the next work is due (`now` or earlier: at once), or None if there is none until the store changes. `ahead` is
    what the store has just returned."""
    if ahead.runs_wait:
        return now
    # While schedulers are paused, no schedule fires.
    fires = bool(ahead.schedules) and control_for(await store.list_controls(), "", host) is None
    times = [needs_firing_at(entry, now) for entry in ahead.schedules] if fires else []
    planned = [time for time in (ahead.next_alert, ahead.next_location) if time is not None]
    return min([*times, *planned], default=None)


def needs_firing_at(entry: ScheduleEntry, now: datetime) -> datetime:
    """When the schedule needs attention. Now if it is not planned yet, or was planned before the clock was set back."""
    if entry.next_fire is None or entry.next_fire <= now:
        return now
    try:
        first = first_fire(entry.schedule, entry.workflow, now)
    except UsageError:
        return entry.next_fire  # reported when it is due
    return now if first is not None and first < entry.next_fire else entry.next_fire

"""When a schedule fires: pure functions of the schedule and a time.

Daylight saving follows cronsim: a fixed time of day that falls into the gap is moved out of it, one that occurs twice
fires once. All times passed in and returned are in UTC.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import islice, takewhile

from ork.errors import UsageError
from ork.model.digest import sha256
from ork.model.record import Record
from ork.model.workflow import Catchup, Schedule

# Bounds the work for a schedule of every second after a year of downtime.
MAX_MISSED_COUNTED = 1000
_RESOLUTION = timedelta(seconds=1)


class Due(Record):
    """The scheduled times due at some point: `times` get one run each, oldest first; `missed` get none.

    `next` is the first later time, or None. `missed` is capped at MAX_MISSED_COUNTED.
    """

    times: tuple[datetime, ...]
    missed: int
    first_missed: datetime | None
    next: datetime | None


def fire_times(schedule: Schedule, after: datetime) -> Iterator[datetime]:
    """Yield all times after `after` in ascending order, without jitter."""
    from zoneinfo import ZoneInfo

    from cronsim import CronSim, CronSimError

    try:
        zone = UTC if schedule.timezone == "UTC" else ZoneInfo(schedule.timezone)
        times = CronSim(schedule.cron, after.astimezone(zone))
    except (CronSimError, ValueError, OSError, LookupError) as error:
        raise UsageError(f"invalid schedule `{schedule.cron}` in {schedule.timezone}: {error}") from error
    latest = after.astimezone(UTC)
    try:
        for time in times:
            instant = time.astimezone(UTC)
            # Around a clock change two local times can be the same instant, or an hour can repeat.
            if instant > latest:
                latest = instant
                yield instant
    except OverflowError:  # the calendar ends in the year 9999
        return


def next_fire_times(schedule: Schedule, after: datetime, count: int) -> tuple[datetime, ...]:
    """The first `count` times after `after`. Raises UsageError if the schedule never fires."""
    times = tuple(islice(fire_times(schedule, after), count))
    if count and not times:
        raise UsageError(f"`{schedule.cron}` in {schedule.timezone} never fires")
    return times


def next_fire_time(schedule: Schedule, after: datetime) -> datetime | None:
    return next(fire_times(schedule, after), None)


def jitter_of(schedule: Schedule, workflow: str) -> timedelta:
    """The delay of this workflow within the schedule's jitter. Always the same for the same workflow."""
    if not schedule.jitter:
        return timedelta(0)
    share = int.from_bytes(sha256(workflow.encode()).digest()[:6]) / 2**48
    return timedelta(milliseconds=int(share * schedule.jitter * 1000))


def first_fire(schedule: Schedule | None, workflow: str, now: datetime) -> datetime | None:
    """When a schedule that is enabled now fires first, jitter included; None if it never does."""
    if schedule is None or not schedule.enabled:
        return None
    jitter = jitter_of(schedule, workflow)
    time = next_fire_time(schedule, now - jitter)
    return None if time is None else time + jitter


def due_times(schedule: Schedule, first: datetime, now: datetime, grace: timedelta) -> Due:
    """The times due at `now`, for a schedule whose first time without a run is `first` (without jitter).

    Times up to `grace` late count as on time. Of later ones, `catchup: none` skips all, including those on time; `last`
    keeps the newest one; `all` keeps the newest `catchup_limit`.
    """
    following = next_fire_time(schedule, now)
    if first > now:
        return Due((), 0, None, following)
    most = 1 if schedule.catchup is Catchup.LAST else schedule.catchup_limit
    if schedule.catchup is Catchup.NONE and first < now - grace:
        most = 0
    kept = _latest_times(schedule, first, now, most)
    dropped = times_between(schedule, first, kept[0] - _RESOLUTION if kept else now)
    missed = tuple(islice(dropped, MAX_MISSED_COUNTED))
    return Due(kept, len(missed), missed[0] if missed else None, following)


def times_between(schedule: Schedule, start: datetime, end: datetime) -> Iterator[datetime]:
    """Yield all times from `start` to `end`, both inclusive."""
    return takewhile(lambda time: time <= end, (t for t in fire_times(schedule, start - _RESOLUTION) if t >= start))


def _latest_times(schedule: Schedule, first: datetime, now: datetime, most: int) -> tuple[datetime, ...]:
    """Search backwards in growing windows, so that the cost depends on the times kept, not on those missed."""
    window = timedelta(minutes=1)
    while most:
        start = max(first, now - window)
        found = deque(times_between(schedule, start, now), maxlen=most)
        if start == first or len(found) == most:
            return tuple(found)
        window *= 4
    return ()


class MovedTime(Record):
    """A local time skipped by a clock change, and the time the schedule fires instead (None if not at all)."""

    local: datetime
    instead: datetime | None


class RepeatedTime(Record):
    """A local time that comes twice, because clocks are set back, and when the schedule fires."""

    local: datetime
    fires: tuple[datetime, ...]


def moved_times(schedule: Schedule, after: datetime, until: datetime) -> tuple[MovedTime, ...]:
    """The scheduled times between `after` and `until` that clock changes skip."""
    from zoneinfo import ZoneInfo

    from cronsim import CronSim

    if _ignores_clock_changes(schedule):
        return ()
    zone = ZoneInfo(schedule.timezone)
    moved = []
    for change, gap in _clock_changes(zone, after, until):
        if gap < timedelta(0):
            continue
        start = change.astimezone(zone).replace(tzinfo=None) - gap
        for time in CronSim(schedule.cron, start - _RESOLUTION):
            if time >= start + gap:
                break
            instead = next(times_between(schedule, change, change + _RESOLUTION), None)
            moved.append(MovedTime(time, instead))
            if len(moved) == MAX_MISSED_COUNTED:
                return tuple(moved)
    return tuple(moved)


def repeated_times(schedule: Schedule, after: datetime, until: datetime) -> tuple[RepeatedTime, ...]:
    """The scheduled times between `after` and `until` that clock changes repeat."""
    from zoneinfo import ZoneInfo

    from cronsim import CronSim

    if _ignores_clock_changes(schedule):
        return ()
    zone = ZoneInfo(schedule.timezone)
    repeated: list[RepeatedTime] = []
    for change, gap in _clock_changes(zone, after, until):
        if gap > timedelta(0):
            continue
        start = change.astimezone(zone).replace(tzinfo=None)
        fired = set(times_between(schedule, change + gap, change - gap))
        for time in CronSim(schedule.cron, start - _RESOLUTION):
            if time >= start - gap or len(repeated) == MAX_MISSED_COUNTED:
                break
            both = (time.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
            repeated.append(RepeatedTime(time, tuple(instant for instant in both if instant in fired)))
    return tuple(repeated)


def _ignores_clock_changes(schedule: Schedule) -> bool:
    """True for UTC, and for schedules of every hour: those are hours of real time."""
    return schedule.timezone == "UTC" or schedule.cron.split()[-4] == "*"


def _clock_changes(zone: tzinfo, after: datetime, until: datetime) -> Iterator[tuple[datetime, timedelta]]:
    """Yield each time the zone's clocks are set, and how far forward (negative: back)."""
    day, still = timedelta(days=1), timedelta(0)
    start = after.astimezone(UTC).replace(microsecond=0)
    while start < until:
        low, high = start, start + day
        gap = _offset(zone, high) - _offset(zone, low)
        while gap != still and high - low > _RESOLUTION:
            middle = low + (high - low) // 2
            middle = middle.replace(microsecond=0)
            low, high = (middle, high) if _offset(zone, middle) == _offset(zone, low) else (low, middle)
        if gap != still:
            yield high, gap
        start += day


def _offset(zone: tzinfo, instant: datetime) -> timedelta:
    return instant.astimezone(zone).utcoffset() or timedelta(0)

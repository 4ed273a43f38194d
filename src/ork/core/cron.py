"""When a schedule fires: pure functions of the schedule and a moment.

Times are as cronsim has them: a fixed time of day that a clock change skips is moved out of the gap, one that comes
twice fires once. Every moment given and returned is in UTC.
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

# Beyond this nobody counts any more: a schedule of every second that slept for a year must not cost a minute.
MISSED_COUNTED = 1000
_GRAIN = timedelta(seconds=1)


class Due(Record):
    """What a schedule owes at some moment: `times` get a run each, oldest first; `missed` get none.

    `next` is the first time later than that moment, None if there is none. `missed` stops at MISSED_COUNTED.
    """

    times: tuple[datetime, ...]
    missed: int
    first_missed: datetime | None
    next: datetime | None


def fire_times(schedule: Schedule, after: datetime) -> Iterator[datetime]:
    """Every time later than `after`, growing, without jitter."""
    from zoneinfo import ZoneInfo

    from cronsim import CronSim, CronSimError

    try:
        zone = UTC if schedule.timezone == "UTC" else ZoneInfo(schedule.timezone)
        times = CronSim(schedule.cron, after.astimezone(zone))
    except (CronSimError, ValueError, OSError, LookupError) as error:
        raise UsageError(f"cannot tell when `{schedule.cron}` in {schedule.timezone} fires: {error}") from error
    latest = after.astimezone(UTC)
    try:
        for time in times:
            moment = time.astimezone(UTC)
            # Around a clock change two local times may be one moment, or the second pass of an hour come again.
            if moment > latest:
                latest = moment
                yield moment
    except OverflowError:  # the calendar ends in the year 9999
        return


def next_fire_times(schedule: Schedule, after: datetime, count: int) -> tuple[datetime, ...]:
    """The first `count` times later than `after`. A schedule that never fires is refused."""
    times = tuple(islice(fire_times(schedule, after), count))
    if count and not times:
        raise UsageError(f"`{schedule.cron}` in {schedule.timezone} never fires")
    return times


def next_fire_time(schedule: Schedule, after: datetime) -> datetime | None:
    return next(fire_times(schedule, after), None)


def jitter_of(schedule: Schedule, workflow: str) -> timedelta:
    """How much later than its times this workflow fires: always the same, somewhere within the jitter."""
    if not schedule.jitter:
        return timedelta(0)
    share = int.from_bytes(sha256(workflow.encode()).digest()[:6]) / 2**48
    return timedelta(milliseconds=int(share * schedule.jitter * 1000))


def first_fire(schedule: Schedule | None, workflow: str, now: datetime) -> datetime | None:
    """The moment at which a schedule that begins to hold now fires first, jitter included; None: it does not."""
    if schedule is None or not schedule.enabled:
        return None
    jitter = jitter_of(schedule, workflow)
    time = next_fire_time(schedule, now - jitter)
    return None if time is None else time + jitter


def due_times(schedule: Schedule, first: datetime, now: datetime, grace: timedelta) -> Due:
    """What is owed at `now` by a schedule whose first time without a run is `first` (jitter not counted).

    Times up to `grace` late are on time. Of the rest, `catchup` none leaves out all, and then it leaves out those on
    time as well: whoever was away begins with the next time. `last` keeps the newest and `all` the newest
    `catchup_limit`.
    """
    following = next_fire_time(schedule, now)
    if first > now:
        return Due((), 0, None, following)
    most = 1 if schedule.catchup is Catchup.LAST else schedule.catchup_limit
    if schedule.catchup is Catchup.NONE and first < now - grace:
        most = 0
    kept = _newest_times(schedule, first, now, most)
    dropped = times_between(schedule, first, kept[0] - _GRAIN if kept else now)
    missed = tuple(islice(dropped, MISSED_COUNTED))
    return Due(kept, len(missed), missed[0] if missed else None, following)


def times_between(schedule: Schedule, start: datetime, end: datetime) -> Iterator[datetime]:
    """Every time from `start` to `end`, both included."""
    return takewhile(lambda time: time <= end, (t for t in fire_times(schedule, start - _GRAIN) if t >= start))


def _newest_times(schedule: Schedule, first: datetime, now: datetime, most: int) -> tuple[datetime, ...]:
    """Looked for backwards in growing windows, so that a long absence costs what is kept, not what was missed."""
    window = timedelta(minutes=1)
    while most:
        start = max(first, now - window)
        found = deque(times_between(schedule, start, now), maxlen=most)
        if start == first or len(found) == most:
            return tuple(found)
        window *= 4
    return ()


class Moved(Record):
    """A local time that a clock change leaves out, and the moment the schedule fires instead (None: not at all)."""

    local: datetime
    instead: datetime | None


def moved_times(schedule: Schedule, after: datetime, until: datetime) -> tuple[Moved, ...]:
    """Which of its times the clock changes between two moments leave out."""
    from zoneinfo import ZoneInfo

    from cronsim import CronSim

    if schedule.timezone == "UTC":
        return ()
    zone = ZoneInfo(schedule.timezone)
    moved = []
    for change, gap in _gaps(zone, after, until):
        start = change.astimezone(zone).replace(tzinfo=None) - gap
        for time in CronSim(schedule.cron, start - _GRAIN):
            if time >= start + gap:
                break
            instead = next(times_between(schedule, change, change + _GRAIN), None)
            moved.append(Moved(time, instead))
            if len(moved) == MISSED_COUNTED:
                return tuple(moved)
    return tuple(moved)


def _gaps(zone: tzinfo, after: datetime, until: datetime) -> Iterator[tuple[datetime, timedelta]]:
    """Moments at which the clocks of a zone are set forward, and by how much."""
    day = timedelta(days=1)
    start = after.astimezone(UTC).replace(microsecond=0)
    while start < until:
        low, high = start, start + day
        gap = _offset(zone, high) - _offset(zone, low)
        while gap > timedelta(0) and high - low > _GRAIN:
            middle = low + (high - low) // 2
            middle = middle.replace(microsecond=0)
            low, high = (middle, high) if _offset(zone, middle) == _offset(zone, low) else (low, middle)
        if gap > timedelta(0):
            yield high, gap
        start += day


def _offset(zone: tzinfo, moment: datetime) -> timedelta:
    return moment.astimezone(zone).utcoffset() or timedelta(0)

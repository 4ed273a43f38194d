"""When schedules fire, clock changes included, and what is owed after an absence."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim
from hypothesis import given
from hypothesis import strategies as st

from ork.core.cron import (
    Due,
    due_times,
    first_fire,
    jitter_of,
    moved_times,
    next_fire_time,
    next_fire_times,
    repeated_times,
    times_between,
)
from ork.errors import UsageError
from ork.model.workflow import Catchup, Schedule

GRACE = timedelta(seconds=60)


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc,arg-type]


def local(cron: str, zone: str, after: datetime, count: int = 3) -> list[str]:
    times = next_fire_times(Schedule(cron, zone), after, count)
    return [time.astimezone(ZoneInfo(zone)).isoformat() for time in times]


@pytest.mark.parametrize(
    ("zone", "cron", "after", "expected"),
    [
        # Moved out of the gap, to its end.
        ("America/New_York", "30 2 * * *", utc(2026, 3, 7, 12),
         ["2026-03-08T03:00:00-04:00", "2026-03-09T02:30:00-04:00", "2026-03-10T02:30:00-04:00"]),
        ("America/Santiago", "30 0 * * *", utc(2026, 9, 5, 0),
         ["2026-09-05T00:30:00-04:00", "2026-09-06T01:00:00-03:00", "2026-09-07T00:30:00-03:00"]),
        ("Australia/Lord_Howe", "15 2 * * *", utc(2026, 10, 2, 12),
         ["2026-10-03T02:15:00+10:30", "2026-10-04T02:30:00+11:00", "2026-10-05T02:15:00+11:00"]),
        # Once in the overlap, the first time it comes.
        ("America/New_York", "30 1 * * *", utc(2026, 10, 31, 12),
         ["2026-11-01T01:30:00-04:00", "2026-11-02T01:30:00-05:00", "2026-11-03T01:30:00-05:00"]),
        ("America/Santiago", "30 23 * * *", utc(2026, 4, 3, 12),
         ["2026-04-03T23:30:00-03:00", "2026-04-04T23:30:00-03:00", "2026-04-05T23:30:00-04:00"]),
        ("Australia/Lord_Howe", "45 1 * * *", utc(2026, 4, 3, 12),
         ["2026-04-04T01:45:00+11:00", "2026-04-05T01:45:00+11:00", "2026-04-06T01:45:00+10:30"]),
        # Every hour is every hour of real time.
        ("America/New_York", "0 * * * *", utc(2026, 11, 1, 4, 30),
         ["2026-11-01T01:00:00-04:00", "2026-11-01T01:00:00-05:00", "2026-11-01T02:00:00-05:00"]),
        ("Asia/Kolkata", "30 5 * * *", utc(2026, 1, 1),
         ["2026-01-02T05:30:00+05:30", "2026-01-03T05:30:00+05:30", "2026-01-04T05:30:00+05:30"]),
    ],
)  # fmt: skip
def test_clock_changes_neither_skip_nor_repeat_a_time(
    zone: str, cron: str, after: datetime, expected: list[str]
) -> None:
    assert local(cron, zone, after) == expected


def test_a_time_in_a_repeated_hour_fires_once() -> None:
    assert local("30 1 * * *", "America/New_York", utc(2026, 11, 1, 6, 10), 1) == ["2026-11-02T01:30:00-05:00"]


def test_a_sixth_field_for_seconds_is_supported() -> None:
    assert next_fire_times(Schedule("*/20 * * * * *"), utc(2026, 1, 1), 2) == (
        utc(2026, 1, 1, 0, 0, 20), utc(2026, 1, 1, 0, 0, 40),
    )  # fmt: skip


def test_the_next_time_is_strictly_later_than_the_given_one() -> None:
    schedule = Schedule("0 2 * * *")
    at_two = utc(2026, 1, 1, 2)
    assert next_fire_time(schedule, at_two - timedelta(microseconds=1)) == at_two
    assert next_fire_time(schedule, at_two) == utc(2026, 1, 2, 2)
    assert next_fire_time(schedule, at_two + timedelta(microseconds=1)) == utc(2026, 1, 2, 2)


@pytest.mark.parametrize(("cron", "zone"), [("0 0 30 2 *", "UTC"), ("x", "UTC"), ("0 2 * * *", "Nowhere/At_All")])
def test_invalid_schedules_and_those_that_never_fire_are_rejected(cron: str, zone: str) -> None:
    with pytest.raises(UsageError):
        next_fire_times(Schedule(cron, zone), utc(2026, 1, 1), 1)


@given(
    zone=st.sampled_from(["America/New_York", "America/Santiago", "Australia/Lord_Howe", "Asia/Kolkata"]),
    cron=st.sampled_from(["30 1 * * *", "15 2 * * *", "0 0 * * *", "*/15 * * * *", "5 */2 * * *", "0 0 1 * *"]),
    start=st.datetimes(datetime(2026, 1, 1), datetime(2027, 12, 31)),
)
def test_times_match_cronsim_in_ascending_order_without_duplicates(zone: str, cron: str, start: datetime) -> None:
    after = start.replace(tzinfo=UTC, microsecond=0)
    times = next_fire_times(Schedule(cron, zone), after, 5)
    theirs = CronSim(cron, (after - timedelta(days=40)).astimezone(ZoneInfo(zone)))
    expected = []
    for time in theirs:
        moment = time.astimezone(UTC)
        if moment > after and moment not in expected:
            expected.append(moment)
        if len(expected) == 5:
            break
    assert list(times) == expected


# ── what is owed ─────────────────────────────────────────────────────────────────────────────────


def owed(catchup: Catchup, *, cron: str = "0 * * * *", limit: int = 100) -> Due:
    """After three hours away: the times at 10:00, 11:00 and 12:00 passed, and it is 12:20."""
    schedule = Schedule(cron, catchup=catchup, catchup_limit=limit)
    return due_times(schedule, utc(2026, 1, 1, 10), utc(2026, 1, 1, 12, 20), GRACE)


def test_catchup_none_runs_nothing_after_a_downtime() -> None:
    assert owed(Catchup.NONE) == Due((), 3, utc(2026, 1, 1, 10), utc(2026, 1, 1, 13))
    assert owed(Catchup.NONE, cron="* * * * *").times == ()


def test_catchup_last_runs_the_newest_time_after_a_downtime() -> None:
    assert owed(Catchup.LAST) == Due((utc(2026, 1, 1, 12),), 2, utc(2026, 1, 1, 10), utc(2026, 1, 1, 13))


def test_catchup_all_runs_every_missed_time_oldest_first() -> None:
    assert owed(Catchup.ALL).times == (utc(2026, 1, 1, 10), utc(2026, 1, 1, 11), utc(2026, 1, 1, 12))
    assert owed(Catchup.ALL).missed == 0


def test_catchup_all_respects_its_limit_and_counts_missed_times() -> None:
    assert owed(Catchup.ALL, limit=2) == Due(
        (utc(2026, 1, 1, 11), utc(2026, 1, 1, 12)), 1, utc(2026, 1, 1, 10), utc(2026, 1, 1, 13)
    )


def test_a_time_within_the_grace_period_counts_as_on_time() -> None:
    for catchup in Catchup:
        due = due_times(Schedule("0 * * * *", catchup=catchup), utc(2026, 1, 1, 10), utc(2026, 1, 1, 10, 1), GRACE)
        assert (due.times, due.missed) == ((utc(2026, 1, 1, 10),), 0)


def test_nothing_is_due_before_the_first_time() -> None:
    due = due_times(Schedule("0 * * * *"), utc(2026, 1, 1, 10), utc(2026, 1, 1, 9, 59), GRACE)
    assert due == Due((), 0, None, utc(2026, 1, 1, 10))


def test_a_year_of_downtime_of_a_secondly_schedule_is_evaluated_quickly() -> None:
    schedule = Schedule("* * * * * *", catchup=Catchup.ALL, catchup_limit=3)
    due = due_times(schedule, utc(2025, 1, 1), utc(2026, 1, 1), GRACE)
    assert due.times == tuple(utc(2025, 12, 31, 23, 59, 58) + timedelta(seconds=n) for n in range(3))
    assert due.missed == 1000


@given(
    catchup=st.sampled_from(list(Catchup)),
    cron=st.sampled_from(["30 1 * * *", "15 2 * * *", "*/15 * * * *", "0 0 * * 0", "5 */2 * * *"]),
    zone=st.sampled_from(["America/New_York", "America/Santiago", "Australia/Lord_Howe", "UTC"]),
    start=st.datetimes(datetime(2026, 1, 1), datetime(2026, 12, 31)),
    away=st.integers(0, 8 * 86_400),
)
def test_every_time_is_either_due_or_missed_and_never_both(
    catchup: Catchup, cron: str, zone: str, start: datetime, away: int
) -> None:
    schedule = Schedule(cron, zone, catchup, catchup_limit=3)
    first = next_fire_time(schedule, start.replace(tzinfo=UTC))
    assert first is not None
    now = first + timedelta(seconds=away)
    due = due_times(schedule, first, now, GRACE)
    passed = list(times_between(schedule, first, now))
    assert list(due.times) == (passed[-len(due.times) :] if due.times else [])
    assert due.missed + len(due.times) == len(passed)
    assert due.next == next_fire_time(schedule, now)


# ── jitter ───────────────────────────────────────────────────────────────────────────────────────


def test_jitter_is_the_same_every_time_and_differs_between_workflows() -> None:
    schedule = Schedule("0 2 * * *", jitter=600)
    delays = {name: jitter_of(schedule, name) for name in ("a", "b", "c", "d")}
    assert delays == {name: jitter_of(schedule, name) for name in delays}
    assert len(set(delays.values())) == 4
    assert all(timedelta(0) <= delay < timedelta(seconds=600) for delay in delays.values())
    assert jitter_of(Schedule("0 2 * * *"), "a") == timedelta(0)


def test_a_schedule_deployed_between_its_time_and_its_jitter_still_fires_today() -> None:
    schedule = Schedule("0 2 * * *", jitter=600)
    delay = jitter_of(schedule, "a")
    assert delay > timedelta(seconds=2)
    at_two = utc(2026, 1, 1, 2)
    assert first_fire(schedule, "a", at_two + timedelta(seconds=1)) == at_two + delay
    assert first_fire(Schedule("0 2 * * *", enabled=False), "a", at_two) is None
    assert first_fire(None, "a", at_two) is None


YEAR = utc(2026, 1, 1), utc(2027, 1, 1)


@pytest.mark.parametrize(
    ("cron", "skipped", "repeated"),
    [
        ("30 2 * * *", [("2026-03-29T02:30:00", "01:00")], [("2026-10-25T02:30:00", ["00:30"])]),
        # With seconds, a time is taken as it is: it does not fire, or fires twice.
        ("0 30 2 * * *", [("2026-03-29T02:30:00", None)], [("2026-10-25T02:30:00", ["00:30", "01:30"])]),
        ("30 4 * * *", [], []),
        ("*/30 2 * * *", [("2026-03-29T02:00:00", None), ("2026-03-29T02:30:00", None)],
         [("2026-10-25T02:00:00", ["00:00", "01:00"]), ("2026-10-25T02:30:00", ["00:30", "01:30"])]),
        # Every hour is every hour of real time.
        ("0 * * * *", [], []),
        ("*/20 * * * *", [], []),
    ],
)  # fmt: skip
def test_times_that_clock_changes_skip_or_repeat(
    cron: str, skipped: list[tuple[str, str | None]], repeated: list[tuple[str, list[str]]]
) -> None:
    schedule = Schedule(cron, "Europe/Prague")
    moved = moved_times(schedule, *YEAR)
    assert [(each.local.isoformat(), each.instead and f"{each.instead:%H:%M}") for each in moved] == skipped
    twice = repeated_times(schedule, *YEAR)
    assert [(each.local.isoformat(), [f"{time:%H:%M}" for time in each.fires]) for each in twice] == repeated
    assert moved_times(Schedule(cron), *YEAR) == repeated_times(Schedule(cron), *YEAR) == ()

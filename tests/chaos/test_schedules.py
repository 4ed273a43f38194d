"""Schedules and schedulers that are killed or were away: the runs that are owed, none doubled, none lost."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.faketime import forget_the_dead
from tests.postgres import fresh_database

from .judge import Court, eventually, kill

pytestmark = pytest.mark.slow


class Rhythm(NamedTuple):
    cron: str
    every: timedelta
    kill_seconds: float
    kills: int


SECONDS = Rhythm("* * * * * *", timedelta(seconds=1), 1.5, 6)
MINUTES = Rhythm("* * * * *", timedelta(minutes=1), 20.0, 30)


@pytest.fixture(params=["sqlite", "postgres"])
def court(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Court]:
    if request.param == "sqlite":
        yield Court(tmp_path)
    else:
        with fresh_database() as url:
            yield Court(tmp_path, {"ORK_STORE": url})


def now() -> datetime:
    return datetime.now(UTC)


def write_flow(court: Court, **schedule: str) -> None:
    court.write_workflow("flow", {"a": {"command": ["true"]}}, schedule=schedule)


def ended_runs(court: Court) -> list[dict[str, str]]:
    """All of them, once each has ended."""
    eventually(lambda: all(run["finished_at"] for run in court.runs()))
    return court.runs()


@pytest.mark.parametrize(
    "rhythm",
    [pytest.param(SECONDS, id="seconds"), pytest.param(MINUTES, id="ten-minutes", marks=pytest.mark.soak)],
)
def test_one_run_per_time_while_two_schedulers_are_killed_in_turns(court: Court, rhythm: Rhythm) -> None:
    write_flow(court, cron=rhythm.cron)
    court.deploy("flow")
    deployed, began = now(), time.monotonic()
    schedulers = [court.start("scheduler"), court.start("scheduler")]
    try:
        for number in range(rhythm.kills):
            due = began + (number + 1) * rhythm.kill_seconds
            eventually(lambda t=due: time.monotonic() > t)
            kill(schedulers[number % 2])
            schedulers[number % 2] = court.start("scheduler")
        asked = now()
        assert court.ork("workflow", "disable", "flow").returncode == 0
        disabled = now()
        runs = ended_runs(court)
    finally:
        for scheduler in schedulers:
            kill(scheduler)
    times = sorted(datetime.fromisoformat(run["scheduled_for"]) for run in runs)
    print(f"{len(times)} runs in {(asked - deployed).total_seconds():.0f} s, {rhythm.kills} kills")
    assert len(times) == len(set(times))
    # The newest may not have been fired yet when the schedule was disabled, by schedulers that had just started.
    surely = asked - max(timedelta(seconds=5), rhythm.every / 10)
    assert whole_times(rhythm, deployed, surely) <= set(times) <= whole_times(rhythm, deployed - rhythm.every, disabled)
    assert {run["status"] for run in runs} == {"success"}


def whole_times(rhythm: Rhythm, after: datetime, until: datetime) -> set[datetime]:
    step = rhythm.every.total_seconds()
    first, last = int(after.timestamp() // step) + 1, int(until.timestamp() // step)
    return {datetime.fromtimestamp(number * step, UTC) for number in range(first, last + 1)}


@pytest.mark.parametrize(("catchup", "owed"), [("none", 0), ("last", 1), ("all", 3)])
def test_down_for_three_hours(court: Court, catchup: str, owed: int) -> None:
    """Deployed three hours ago and never fired: a schedule of every hour, the last time of which is half an hour old."""
    if shutil.which("faketime") is None:
        pytest.skip("nothing can have been away: faketime is not installed (scripts/components.sh faketime)")
    minute = (now() - timedelta(minutes=30)).replace(second=0, microsecond=0)
    write_flow(court, cron=f"{minute.minute} * * * *", catchup=catchup)
    forget_the_dead()
    court.deploy("flow", inside=["faketime", "-f", "-3h"])
    scheduler = court.start("scheduler")
    try:
        eventually(lambda: "ready" in (court.folder / "services.log").read_text())
        runs = ended_runs(court)
    finally:
        kill(scheduler)
    times = [datetime.fromisoformat(run["scheduled_for"]) for run in runs]
    assert sorted(times) == [minute - timedelta(hours=back) for back in reversed(range(owed))]
    assert {run["status"] for run in runs} <= {"success"}

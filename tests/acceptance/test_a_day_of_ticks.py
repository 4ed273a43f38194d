"""A day's workflows run by `ork tick` alone: each tick is a process, started when the one before it said to come back."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.faketime import fooled, library
from tests.loopback import loopback

pytestmark = pytest.mark.slow

# The day on which clocks go forward in Prague: there is no 2:30 there.
BEGIN = datetime(2026, 3, 28, 12, 0, 30, tzinfo=UTC)
END = BEGIN + timedelta(days=1)
FLOWS = {
    "hourly": ("0 * * * *", "UTC"),
    "quarterly": ("15 */6 * * *", "UTC"),
    "nightly": ("30 2 * * *", "Europe/Prague"),
    "office": ("45 8 * * *", "America/New_York"),
    "weekly": ("0 0 * * 1", "UTC"),  # on no day of these
}


def _at(hour: int, minute: int, day: int) -> str:
    return f"2026-03-{day}T{hour:02}:{minute:02}:00.000000Z"


# By hand, not by the code that is tried.
DUE = Counter(
    [
        *(("hourly", _at(hour, 0, 28)) for hour in range(13, 24)),
        *(("hourly", _at(hour, 0, 29)) for hour in range(13)),
        *(("quarterly", _at(hour, 15, day)) for hour, day in ((12, 28), (18, 28), (0, 29), (6, 29))),
        ("nightly", _at(1, 0, 29)),  # moved to the end of the gap: 3:00 in Prague
        ("office", _at(12, 45, 28)),
    ]
)


@pytest.fixture(scope="module")
def faketime() -> Iterator[dict[str, str]]:
    """The environment of processes that believe in another time."""
    with fooled(library(), _moment(BEGIN)) as environment:
        yield environment


class Day:
    """A project whose processes believe that it is whatever time the test says."""

    def __init__(
        self, folder: Path, environment: dict[str, str], faketime: dict[str, str], flows: dict[str, str]
    ) -> None:
        self._folder = folder
        self._environment = {**environment, **faketime, "TZ": "UTC", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
        for name, schedule in flows.items():
            tasks = "  a: {command: [sh, -c, 'echo $ORK_WORKFLOW_NAME >> ledger']}\n  b: {command: 'true', depends_on: [a]}\n"
            (folder / f"{name}.yaml").write_text(f"name: {name}\nschedule: {schedule}\ntasks:\n{tasks}")

    def ork(self, now: datetime, *args: str) -> Any:
        environment = {**self._environment, "FAKETIME": _moment(now)}
        done = subprocess.run(
            [sys.executable, "-m", "ork", *args, "--json"],
            cwd=self._folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)

    def ticks(self, now: datetime, end: datetime) -> Iterator[datetime]:
        """One after the other, each at the time that the one before asked for; gives their times."""
        while now < end:
            yield now
            asked_for = self.ork(now, "tick")["next_wake"]
            assert asked_for is not None, "a schedule always has a next time"
            now = max(now + timedelta(seconds=1), _up_to_the_second(datetime.fromisoformat(asked_for)))


def _moment(now: datetime) -> str:
    return f"@{now:%Y-%m-%d %H:%M:%S}"


def _up_to_the_second(moment: datetime) -> datetime:
    return moment.replace(microsecond=0) + timedelta(seconds=1 if moment.microsecond else 0)


def test_each_due_time_of_a_day_runs_once_with_nothing_but_ticks(
    tmp_path: Path, plain_environment: dict[str, str], faketime: dict[str, str]
) -> None:
    flows = {name: f'{{cron: "{cron}", timezone: {zone}}}' for name, (cron, zone) in FLOWS.items()}
    day = Day(tmp_path, plain_environment, faketime, flows)
    day.ork(BEGIN, "deploy", *(f"{name}.yaml" for name in FLOWS))
    ticked = list(day.ticks(BEGIN, END))
    runs = day.ork(END, "runs", "--limit", "200")["runs"]
    assert Counter((run["workflow"], run["scheduled_for"]) for run in runs) == DUE
    failed = [day.ork(END, "show", run["id"]) for run in runs if run["status"] != "success"]
    assert not failed
    assert Counter((tmp_path / "ledger").read_text().split()) == Counter(run["workflow"] for run in runs)
    late = [datetime.fromisoformat(run["created_at"]) - datetime.fromisoformat(run["scheduled_for"]) for run in runs]
    assert max(late) < timedelta(seconds=60)
    # Come back when something is due: nobody looks in between.
    assert len(ticked) < 10 * len(runs)


def test_after_three_hours_without_a_tick_catchup_decides_and_people_are_told_once(
    tmp_path: Path, plain_environment: dict[str, str], faketime: dict[str, str]
) -> None:
    flows = {wish: f'{{cron: "0 * * * *", catchup: {wish}}}' for wish in ("none", "last", "all")}
    with loopback() as site:
        site.answers["/hook"] = (200, {})
        channel = f"{{webhook: {site.url}/hook, on: missed, every_workflow: true}}"
        (tmp_path / "ork.yaml").write_text(f"alerts: {{ops: {channel}}}\noutbound: {{allow: [127.0.0.1]}}\n")
        day = Day(tmp_path, plain_environment, faketime, flows)
        day.ork(BEGIN, "deploy", *(f"{name}.yaml" for name in flows))
        late = BEGIN + timedelta(hours=3, minutes=20)
        for _ in range(3):
            day.ork(late, "tick")
        made = Counter(run["workflow"] for run in day.ork(late, "runs")["runs"])
        told = [json.loads(asked.body) for asked in site.asked]
    assert made == {"last": 1, "all": 3}
    assert sorted((body["kind"], body["workflow"]) for body in told) == [("missed", "last"), ("missed", "none")]

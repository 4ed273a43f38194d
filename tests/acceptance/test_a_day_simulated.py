"""A day of schedules as `ork schedules simulate` plays it, and the same day of real processes on a fake clock."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from tests.cloud.virtual_clock import VirtualClock

pytestmark = pytest.mark.slow

# Clocks go forward in Prague that night.
BEGIN = datetime(2026, 3, 28, 12, 30, tzinfo=UTC)
END = BEGIN + timedelta(days=1)
# At 18:00, 0:00, 6:00 and 12:00 three workflows want the one slot of the pool. Priorities decide.
FLOWS = {
    "often": ("0 */3 * * *", "UTC", "{command: [sleep, '2'], pool: db, priority: 3}"),
    "urgent": ("0 */6 * * *", "UTC", "{command: [sleep, '3'], pool: db, priority: 5}"),
    "last": ("0 */6 * * *", "UTC", "{command: [sleep, '1'], pool: db}"),
    "nightly": ("30 2 * * *", "Europe/Prague", "{command: [sleep, '4']}"),
}
# By hand: runs in the order of their starts.
STARTS = [
    ("often", "2026-03-28T15:00"),
    *((name, "2026-03-28T18:00") for name in ("urgent", "often", "last")),
    ("often", "2026-03-28T21:00"),
    *((name, "2026-03-29T00:00") for name in ("urgent", "often", "last")),
    ("nightly", "2026-03-29T01:00"),
    ("often", "2026-03-29T03:00"),
    *((name, "2026-03-29T06:00") for name in ("urgent", "often", "last")),
    ("often", "2026-03-29T09:00"),
    *((name, "2026-03-29T12:00") for name in ("urgent", "often", "last")),
]


class Day:
    """A project on a clock that jumps while nothing is alive, and otherwise runs at the usual speed."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.clock = VirtualClock(BEGIN, folder.parent / f"{folder.name}.clock")
        self._folder = folder
        self._environment = {**environment, **self.clock.environment}

    def ork(self, *args: str) -> Any:
        done = subprocess.run(
            [sys.executable, "-m", "ork", *args, "--json"],
            cwd=self._folder, env=self._environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)

    def live(self) -> None:
        """Ticks, each of which stays until its tasks have ended, at the times that the ones before asked for."""
        while True:
            asked_for = datetime.fromisoformat(self.ork("tick", "--stay")["next_wake"])
            if asked_for >= END:
                return
            if asked_for > self.clock.now():
                self.clock.move_to(asked_for)


def _deploy(day: Day, folder: Path) -> None:
    (folder / "ork.yaml").write_text("pools: {db: 1}\n")
    for name, (cron, zone, task) in FLOWS.items():
        tasks = f"  a: {task}\n  b: {{command: 'true', depends_on: [a]}}\n"
        schedule = f'{{cron: "{cron}", timezone: {zone}}}'
        (folder / f"{name}.yaml").write_text(f"name: {name}\nschedule: {schedule}\ntasks:\n{tasks}")
    day.ork("deploy", *(f"{name}.yaml" for name in FLOWS))


def _real(day: Day) -> list[dict[str, Any]]:
    """The runs of the store as the simulation shows them, in the order of their starts."""
    runs = [day.ork("show", run["id"]) for run in day.ork("runs", "--limit", "200")["runs"]]
    for run in runs:
        run["first_task_at"] = min(task["dispatched_at"] for task in run["tasks"])
    return sorted(runs, key=lambda run: str(run["first_task_at"]))


def _starts(runs: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(run["workflow"], run["scheduled_for"][:16]) for run in runs]


def _seconds(runs: list[dict[str, Any]], since: str, until: str) -> dict[str, float]:
    """The median time between two times of the runs, by workflow."""
    found: dict[str, list[float]] = {}
    for run in runs:
        seconds = (datetime.fromisoformat(run[until]) - datetime.fromisoformat(run[since])).total_seconds()
        found.setdefault(run["workflow"], []).append(seconds)
    return {workflow: median(each) for workflow, each in found.items()}


def test_a_simulated_day_has_the_runs_order_and_durations_of_the_real_one(
    tmp_path: Path, plain_environment: dict[str, str]
) -> None:
    day = Day(tmp_path, plain_environment)
    _deploy(day, tmp_path)
    day.live()
    real = _real(day)
    report = day.ork("schedules", "simulate", "--runs", "--from", BEGIN.isoformat(), "--to", END.isoformat())
    played = report["runs"]
    assert _starts(real) == STARTS
    assert _starts(played) == STARTS
    assert {run["status"] for run in real} == {run["status"] for run in played} == {"success"}
    for since, until in (("started_at", "finished_at"), ("started_at", "first_task_at")):
        took, predicted = _seconds(real, since, until), _seconds(played, since, until)
        for workflow, seconds in took.items():
            assert predicted[workflow] == pytest.approx(seconds, abs=2.5, rel=0.25), (workflow, until)
    # Who waited: four times each, `often` for `urgent` and `last` for both.
    assert [(each["name"], each["waited"]) for each in report["limits"] if each["waited"]] == [("pool:db", 8)]

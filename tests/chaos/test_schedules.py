"""A schedule and schedulers that are killed: one run for each time, none doubled, none lost."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest

OrkCli = Callable[..., "subprocess.CompletedProcess[str]"]

FLOW = 'name: flow\nschedule: {cron: "* * * * * *", catchup: all}\ntasks:\n  a: {command: echo 1}\n'
ROUNDS = 6


@pytest.mark.slow
def test_one_run_per_time_while_two_schedulers_are_killed_in_turns(
    tmp_path: Path, ork_cli: OrkCli, plain_environment: dict[str, str]
) -> None:
    (tmp_path / "flow.yaml").write_text(FLOW)
    assert ork_cli("deploy", "flow.yaml", cwd=tmp_path).returncode == 0

    def start() -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "ork", "scheduler"]
        return subprocess.Popen(
            command, cwd=tmp_path, env=plain_environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    schedulers = [start(), start()]
    try:
        for round in range(ROUNDS):
            time.sleep(1.5)  # not a wait for anything: the time in which schedules fire
            schedulers[round % 2].kill()
            schedulers[round % 2].wait()
            schedulers[round % 2] = start()
        assert ork_cli("workflow", "disable", "flow", cwd=tmp_path).returncode == 0
        runs = _ended_runs(tmp_path, ork_cli)
    finally:
        for scheduler in schedulers:
            scheduler.kill()
            scheduler.wait()
    slots = sorted(datetime.fromisoformat(run["scheduled_for"]) for run in runs)
    assert len(slots) >= ROUNDS
    assert all(after - before == timedelta(seconds=1) for before, after in itertools.pairwise(slots))
    assert {run["status"] for run in runs} == {"success"}


def _ended_runs(folder: Path, ork_cli: OrkCli) -> list[dict[str, str]]:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        runs: list[dict[str, str]] = json.loads(ork_cli("runs", "--json", "--limit", "1000", cwd=folder).stdout)["runs"]
        if all(run["finished_at"] for run in runs):
            return runs
    raise AssertionError("some runs never ended")

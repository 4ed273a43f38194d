"""Two hundred tasks beside a bucket that answers in 30 ms: few round trips for each task, and those of different tasks at the same time."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from datetime import datetime
from pathlib import Path

import pytest

from tests.cloud.fake_gcs import FakeGcs
from tests.conftest import OrkCli

pytestmark = pytest.mark.slow

DELAY_SECONDS = 0.03
TASKS = 200
MOST_ROUND_TRIPS = 7  # for a task, if all of its operations came one after the other
_ATTEMPT = re.compile(r"/(\w+\.\d+\.\d+)\.")


def test_tasks_wait_for_few_round_trips_and_not_for_each_other(gcs: FakeGcs, tmp_path: Path, ork_cli: OrkCli) -> None:
    gcs.delay = DELAY_SECONDS
    (tmp_path / "light.py").write_text("def main():\n    return 1\n")
    (tmp_path / "wide.yaml").write_text(f"name: wide\ntasks:\n  light: {{file: light.py, parallel: {TASKS}}}\n")
    (tmp_path / "ork.yaml").write_text("max_workers: 16\n")
    env = {"ORK_OBJECTS": gcs.url()}
    done = ork_cli("run", "wide.yaml", cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    of_attempt: dict[str, Counter[str]] = defaultdict(Counter)
    for each in gcs.operations:
        found = _ATTEMPT.search(each.key)
        if found is not None:
            of_attempt[found[1]][f"{each.kind} {each.key.rpartition('.')[0]}"] += 1
    assert len(of_attempt) == TASKS
    trips = {attempt: counted.total() for attempt, counted in of_attempt.items()}
    print(Counter(trips.values()), next(iter(of_attempt.values())))
    assert max(trips.values()) <= MOST_ROUND_TRIPS, of_attempt[max(trips, key=lambda attempt: trips[attempt])]
    shown = json.loads(ork_cli("show", "@last", "--json", cwd=tmp_path, env=env).stdout)
    seconds = (
        datetime.fromisoformat(shown["finished_at"]) - datetime.fromisoformat(shown["started_at"])
    ).total_seconds()
    in_sequence = sum(trips.values()) * DELAY_SECONDS
    print(seconds, in_sequence)
    assert seconds < in_sequence / 2

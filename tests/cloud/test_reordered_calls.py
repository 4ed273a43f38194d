"""Cloud Tasks makes calls late and in another order, two at once, and again after they succeeded.

There is no safety tick: each due time has one run, each run that somebody starts ends, and no task runs twice.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.cloud.box import BEGIN, Box, due_times, seconds_between
from tests.cloud.virtual_clock import VirtualClock

pytestmark = pytest.mark.slow

NOON = datetime(2026, 3, 28, 12, tzinfo=UTC)
LATE_SECONDS = 9.0
# How long a run may take after its last call could have been made. A lost wake takes longer: until the next schedule.
MOST_SECONDS = 90.0
TASKS = """
tasks:
  a: {command: [sh, -c, 'echo $ORK_RUN_ID >> ledger']}
  b: {command: [sh, -c, 'echo $ORK_RUN_ID >> ledger'], depends_on: [a]}
"""


@pytest.fixture
def box(tmp_path: Path, plain_environment: dict[str, str]) -> Iterator[Box]:
    clock = VirtualClock(BEGIN, tmp_path.parent / f"{tmp_path.name}.clock")
    with ExitStack() as stack:
        yield Box(tmp_path, plain_environment, clock, stack)


@pytest.mark.parametrize("hours", [1, pytest.param(24, marks=pytest.mark.soak)])
def test_calls_that_are_late_reordered_and_repeated_give_each_due_time_one_run(box: Box, hours: int) -> None:
    box.ork("deploy", *_write(box))
    box.live_until(NOON - timedelta(minutes=5))
    _disturb(box)
    started = []
    for hour in range(hours):
        for minute in (0, 10, 50):
            box.live_until(NOON + timedelta(hours=hour, minutes=minute))
            started += [box.ork("trigger", "manual")["id"] for _ in range(2)]
    end = NOON + timedelta(hours=hours, minutes=-5)
    box.live_until(end)
    runs = box.ork("runs", "--limit", "500")["runs"]
    due = due_times(timedelta(minutes=20), NOON, end)
    assert Counter(run["scheduled_for"] for run in runs if run["workflow"] == "often") == Counter(due)
    assert {run["id"] for run in runs if run["workflow"] == "manual"} == set(started)
    assert {run["status"] for run in runs} == {"success"}
    assert Counter((box.folder / "ledger").read_text().split()) == {run["id"]: 2 for run in runs}
    took = [seconds_between(run["scheduled_for"] or run["created_at"], run["finished_at"]) for run in runs]
    print(
        f"{len(runs)} runs, {max(took):.1f} s at most; {len(box.queue.deliveries)} calls, {_overtaken(box)} overtaken"
    )
    assert max(took) <= MOST_SECONDS * box.front.load
    assert _overtaken(box)


def test_a_late_call_comes_after_one_that_was_set_for_later() -> None:
    """What the fake does, without Ork."""
    from tests.cloud.cloud_tasks import Faults

    faults = Faults(late_seconds=LATE_SECONDS)
    delays = [faults.delay().total_seconds() for _ in range(20)]
    assert max(delays) <= LATE_SECONDS
    assert any(one > other + 1 for one, other in itertools.pairwise(delays))


def _write(box: Box) -> list[str]:
    schedule = 'schedule: {cron: "*/20 * * * *", catchup: all}'
    return [
        box.write("often.yaml", f"name: often\n{schedule}\n{TASKS}"),
        box.write("manual.yaml", f"name: manual\n{TASKS}"),
    ]


def _disturb(box: Box) -> None:
    faults = box.queue.faults
    faults.late_seconds, faults.twice, faults.repeated = LATE_SECONDS, 0.3, 0.3
    box.front.separates = lambda: faults.happens(0.5)


def _overtaken(box: Box) -> int:
    """How many calls were made after one that was set for a later second."""
    seconds = [int(each.task.split("-")[2]) for each in box.queue.deliveries]
    return sum(second < max(seconds[:number], default=0) for number, second in enumerate(seconds))

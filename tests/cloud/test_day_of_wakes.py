"""Schedules by wakes alone: `ork serve --on-request` is started cold for each call of Cloud Tasks, on a virtual clock.

Instances are killed in the middle of requests, calls are made twice and at the same time, answers of the queue are lost, and
somebody deploys meanwhile: each due time has one run, each task ran once.
"""

from __future__ import annotations

import itertools
import random
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.cloud.box import BEGIN, Box, due_times, percentile, seconds_between
from tests.cloud.front_end import COLD_START
from tests.cloud.virtual_clock import VirtualClock

pytestmark = pytest.mark.slow

NOON = datetime(2026, 3, 28, 12, tzinfo=UTC)
BUSY_SECONDS = 90.0  # how long after a due time its run may cause requests
TASKS = """
tasks:
  a: {command: [sh, -c, 'echo $ORK_RUN_ID >> ledger']}
  b: {command: 'true', depends_on: [a]}
"""

Due = Counter[tuple[str, str]]


def write(box: Box, flows: dict[str, str]) -> list[str]:
    return [
        box.write(f"{name}.yaml", f'name: {name}\nschedule: {{cron: "{cron}", catchup: all}}\n{TASKS}')
        for name, cron in flows.items()
    ]


def check(box: Box, due: Due) -> list[float]:
    """Each due time has one run that succeeded, and each task ran once. Returns how late the runs were, in seconds."""
    runs = box.ork("runs", "--limit", "500")["runs"]
    assert Counter((run["workflow"], run["scheduled_for"]) for run in runs) == due
    assert {run["status"] for run in runs} == {"success"}, runs
    assert Counter((box.folder / "ledger").read_text().split()) == Counter(run["id"] for run in runs)
    late = sorted(seconds_between(run["scheduled_for"], run["created_at"]) for run in runs)
    # What other work on this machine took of it is not Ork's: only the cold start has a fixed length.
    cold = COLD_START.total_seconds()
    return [cold + max(0.0, each - cold) / box.front.load for each in late]


def busy_times(due: Due) -> dict[datetime, float]:
    return dict.fromkeys([BEGIN, *(datetime.fromisoformat(at) for _, at in due)], BUSY_SECONDS)


def due_of(flows: dict[str, timedelta], end: datetime) -> Due:
    """Of schedules that fire regularly from noon on."""
    return Counter((name, at) for name, every in flows.items() for at in due_times(every, NOON, end))


@pytest.fixture
def box(tmp_path: Path, plain_environment: dict[str, str]) -> Iterator[Box]:
    clock = VirtualClock(BEGIN, tmp_path.parent / f"{tmp_path.name}.clock")
    with ExitStack() as stack:
        yield Box(tmp_path, plain_environment, clock, stack)


def test_two_hours_of_schedules_by_wakes_alone(box: Box) -> None:
    box.ork("deploy", *write(box, {"hourly": "0 * * * *"}))
    box.add_safety_tick(timedelta(minutes=45))
    end = datetime(2026, 3, 28, 13, 30, tzinfo=UTC)
    box.live_until(end)
    due = due_of({"hourly": timedelta(hours=1)}, end)
    late = check(box, due)
    _report(box, late)
    assert percentile(late, 0.99) <= 5.0
    assert box.idle_calls(busy_times(due)) == []
    (left,) = box.queue.names()
    assert "-due-" in left


def test_kills_duplicates_lost_answers_and_a_deployment_lose_nothing(box: Box) -> None:
    box.ork("deploy", *write(box, {"half": "*/30 * * * *"}))
    _disturb(box, random.Random(11))
    deploys = threading.Thread(target=lambda: box.ork("deploy", "half.yaml"))
    end = datetime(2026, 3, 28, 12, 45, tzinfo=UTC)
    box.live_until(NOON)
    deploys.start()  # beside the tick that fires
    box.live_until(end)
    deploys.join(120)
    _calm(box)
    box.live_until(end + timedelta(minutes=10))
    assert box.front.killed
    _report(box, check(box, due_of({"half": timedelta(minutes=30)}, end)))


def _disturb(box: Box, chance: random.Random) -> None:
    """Some ticks are killed, at any moment; some calls are made twice, and some of those on two instances at once.

    Not too many: a killed tick leaves two calls, its own and its guard's, and with each made twice they would never end.
    """
    ticks = itertools.count()
    box.front.kills = lambda: chance.uniform(0.0, 0.4) if next(ticks) % 4 == 0 else None
    box.front.separates = lambda: chance.random() < 0.5
    faults = box.queue.faults
    faults.twice, faults.lost_answers, faults.busy = 0.3, 0.1, 0.1


def _calm(box: Box) -> None:
    box.front.kills, box.front.separates = lambda: None, lambda: False
    faults = box.queue.faults
    faults.twice = faults.lost_answers = faults.busy = 0.0


def _report(box: Box, late: list[float]) -> None:
    front, middle = box.front, percentile(late, 0.5)
    print(
        f"{len(late)} runs, late p50 {middle:.1f} s, p99 {percentile(late, 0.99):.1f} s; {len(front.requests)} requests, "
        f"{front.cold_starts} cold starts, {front.killed} killed, {front.cpu_seconds:.1f} s of CPU in requests, load {front.load:.1f}; "
        f"calls of the queue: {dict(box.queue.calls)}"
    )

"""Three schedulers on a real Postgres, real processes, and an external ledger as the judge of what really ran."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.postgres import Server, server_or_skip

from .judge import Court, eventually, kill

pytestmark = pytest.mark.slow

RUNS = 6
TASKS = {"a": 0.2, "b": 0.3, "c": 0.1, "d": 0.2, "e": 0.2}
AFTER = {"b": ["a"], "c": ["a"], "d": ["b", "c"]}


@pytest.fixture
def server() -> Iterator[Server]:
    """Of its own: it is restarted in the middle of things."""
    own = Server(server_or_skip().bin)
    yield own
    own.remove()


@pytest.fixture
def court(tmp_path: Path, server: Server) -> Court:
    court = Court(tmp_path, {"ORK_STORE": server.url(server.new_database())})
    fields = {name: {"depends_on": needed} for name, needed in AFTER.items()}
    court.write_workflow("flow", {name: court.task(seconds, **fields.get(name, {})) for name, seconds in TASKS.items()})
    assert court.ork("deploy", "flow.yaml").returncode == 0
    return court


def statuses(court: Court) -> dict[str, str]:
    answer = court.ork("runs", "--limit", "1000", "--json")
    return {run["id"]: run["status"] for run in json.loads(answer.stdout)["runs"]} if answer.returncode == 0 else {}


def all_over(court: Court, ids: list[str]) -> bool:
    found = statuses(court)
    return all(found.get(id) in ("success", "failed", "cancelled") for id in ids)


def judge(court: Court, server: Server, ids: list[str]) -> None:
    assert {statuses(court)[id] for id in ids} == {"success"}
    assert set(court.starts()) == {f"{id} {task} 1" for id in ids for task in TASKS}
    assert set(court.starts().values()) == {1}
    assert court.overlaps() == []
    eventually(lambda: not court.processes(), 10)
    assert "deadlock detected" not in server.log()


def stop(schedulers: list[subprocess.Popen[bytes]]) -> None:
    for scheduler in schedulers:
        kill(scheduler)


def test_killing_one_of_three_schedulers_every_second_starts_each_attempt_exactly_once(
    court: Court, server: Server
) -> None:
    """P3, P4, P5, P6."""
    ids = [court.trigger("flow") for _ in range(RUNS)]
    dice = random.Random(11)
    schedulers = [court.start("scheduler") for _ in range(3)]
    try:
        deadline = time.monotonic() + 60
        while not all_over(court, ids) and time.monotonic() < deadline:
            victim = dice.randrange(3)
            kill(schedulers[victim])
            schedulers[victim] = court.start("scheduler")
            before = len(court.ledger())
            until = time.monotonic() + 1.0
            eventually(lambda n=before, t=until: len(court.ledger()) > n + 4 or time.monotonic() > t)
    finally:
        stop(schedulers)
    judge(court, server, ids)


def test_restarting_postgres_at_once_again_and_again_doubles_and_loses_nothing(court: Court, server: Server) -> None:
    ids = [court.trigger("flow") for _ in range(RUNS)]
    schedulers = [court.start("scheduler") for _ in range(3)]
    try:
        for _ in range(5):
            before = len(court.ledger())
            until = time.monotonic() + 3.0
            eventually(lambda n=before, t=until: len(court.ledger()) > n or time.monotonic() > t)
            server.restart_at_once()
        eventually(lambda: all_over(court, ids), 60)
    finally:
        stop(schedulers)
    judge(court, server, ids)


def test_a_scheduler_frozen_beyond_its_lease_is_taken_over_and_changes_nothing_when_it_wakes(
    court: Court, server: Server
) -> None:
    ids = [court.trigger("flow") for _ in range(3)]
    sleeper = court.start("scheduler")
    others: list[subprocess.Popen[bytes]] = []
    try:
        eventually(court.starts)
        sleeper.send_signal(signal.SIGSTOP)
        others = [court.start("scheduler"), court.start("scheduler")]
        eventually(lambda: all_over(court, ids), 60)
        sleeper.send_signal(signal.SIGCONT)
        ids.append(court.trigger("flow"))
        eventually(lambda: all_over(court, ids), 60)
    finally:
        stop([sleeper, *others])
    judge(court, server, ids)

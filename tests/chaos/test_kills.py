"""Real processes, killed at any moment; the ledger is the judge."""

from __future__ import annotations

import json
import os
import random
import signal
from pathlib import Path

import pytest

from ork.chaos.ledger import RECORDED

from .judge import Court, eventually, kill

pytestmark = pytest.mark.slow


@pytest.fixture
def court(tmp_path: Path) -> Court:
    return Court(tmp_path)


def finished(court: Court, ids: list[str]) -> bool:
    done = {run["id"] for run in court.runs() if run["status"] in ("success", "failed", "cancelled")}
    return set(ids) <= done


@pytest.mark.parametrize("isolation", ["fork", "interpreter", "shared"])
def test_killing_schedulers_again_and_again_starts_each_attempt_exactly_once(tmp_path: Path, isolation: str) -> None:
    """P3, P4, P5, P6: eight runs of five tasks, two schedulers at a time, one of them killed every moment."""
    court = Court(tmp_path, {"ORK_ISOLATION": isolation})
    court.write_workflow(
        "flow",
        {
            "a": court.function(0.2),
            "b": court.task(0.4, depends_on=["a"]),
            "c": court.function(0.1, depends_on=["a"]),
            "d": court.function(0.3, depends_on=["b", "c"]),
            "e": court.task(0.2),
        },
    )
    assert court.ork("deploy", "flow.yaml").returncode == 0
    ids = [court.trigger("flow") for _ in range(8)]
    dice = random.Random(7)
    schedulers = [court.start("scheduler"), court.start("scheduler")]
    try:
        for _ in range(14):
            before = len(court.ledger())
            eventually(lambda n=before: len(court.ledger()) > n or finished(court, ids), 30)
            if finished(court, ids):
                break
            victim = dice.randrange(2)
            kill(schedulers[victim])
            schedulers[victim] = court.start("scheduler")
        eventually(lambda: finished(court, ids), 90)
    finally:
        for scheduler in schedulers:
            kill(scheduler)
    expected = {f"{id} {task} 1" for id in ids for task in "abcde"}
    assert set(court.starts()) == expected
    assert set(court.starts().values()) == {1}
    assert court.overlaps() == []
    assert {court.run(id)["status"] for id in ids} == {"success"}
    assert court.processes() == []


def test_the_next_scheduler_adopts_a_living_task_and_takes_its_real_exit_code_and_log(court: Court) -> None:
    script = "echo before; sleep 2; echo after; exit 3"
    court.write_workflow("flow", {"a": {"command": ["sh", "-c", script]}})
    court.ork("deploy", "flow.yaml")
    id = court.trigger("flow")
    first = court.start("scheduler")
    eventually(lambda: court.run(id)["tasks"] and court.run(id)["tasks"][0]["status"] == "running")
    kill(first)
    second = court.start("scheduler")
    eventually(lambda: finished(court, [id]))
    kill(second)
    task = court.run(id)["tasks"][0]
    assert (task["status"], task["exit_code"], task["attempt"]) == ("failed", 3, 1)
    assert court.ork("logs", id, "a").stdout == "before\nafter\n"


def test_a_task_that_ended_while_nobody_looked_shows_its_real_end_time(court: Court) -> None:
    court.write_workflow("flow", {"a": court.task(0.5)})
    court.ork("deploy", "flow.yaml")
    id = court.trigger("flow")
    first = court.start("scheduler")
    eventually(lambda: court.starts())
    kill(first)
    eventually(lambda: not court.processes())
    ended = (court.folder / "judged" / "ledger").stat().st_mtime
    court.ork("tick")
    task = court.run(id)["tasks"][0]
    assert task["status"] == "success"
    assert court.starts() == {f"{id} a 1": 1}
    from datetime import datetime

    assert abs(datetime.fromisoformat(task["finished_at"]).timestamp() - ended) < 0.5


def shim_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


@pytest.mark.parametrize("isolation", ["fork", "interpreter"])
@pytest.mark.parametrize("victim", ["shim", "task"])
def test_killing_the_shim_or_the_users_process_leads_to_the_next_attempt_without_overlap(
    tmp_path: Path, victim: str, isolation: str
) -> None:
    court = Court(tmp_path, {"ORK_ISOLATION": isolation})
    court.write_workflow("flow", {"a": court.task(1.5, retries=1, retry_delay=0)})
    court.ork("deploy", "flow.yaml")
    id = court.trigger("flow")
    scheduler = court.start("scheduler")
    try:
        eventually(lambda: court.starts())
        pid = next(p for p in court.processes() if RECORDED.encode() in Path(f"/proc/{p}/cmdline").read_bytes())
        os.kill(shim_of(pid) if victim == "shim" else pid, signal.SIGKILL)
        eventually(lambda: finished(court, [id]))
    finally:
        kill(scheduler)
    run = court.run(id)
    assert run["status"] == "success"
    assert [a["status"] for a in run["tasks"][0]["attempts"]] == ["lost" if victim == "shim" else "failed", "success"]
    assert court.starts() == {f"{id} a 1": 1, f"{id} a 2": 1}
    assert court.overlaps() == []
    assert court.processes() == []


def test_two_schedulers_and_one_run_share_the_work_and_double_nothing(court: Court) -> None:
    court.write_workflow("flow", {f"t{i}": court.task(0.05) for i in range(12)})
    court.ork("deploy", "flow.yaml")
    schedulers = [court.start("scheduler"), court.start("scheduler")]
    try:
        ids = [court.trigger("flow") for _ in range(4)]
        done = court.ork("run", "flow.yaml", "--json")
        assert done.returncode == 0, done.stderr
        ids.append(json.loads(done.stdout)["id"])
        eventually(lambda: finished(court, ids))
    finally:
        for scheduler in schedulers:
            kill(scheduler)
    assert set(court.starts().values()) == {1}
    assert len(court.starts()) == 5 * 12


def test_a_frozen_scheduler_that_wakes_up_after_its_lease_changes_nothing(court: Court) -> None:
    """It is not provably dead, so the other one waits for the lease; then the sleeper is fenced."""
    court.write_workflow("flow", {"a": court.task(1.0), "b": court.task(0.2, depends_on=["a"])})
    court.ork("deploy", "flow.yaml")
    id = court.trigger("flow")
    sleeper = court.start("scheduler")
    eventually(lambda: court.starts())
    sleeper.send_signal(signal.SIGSTOP)
    other = court.start("scheduler")
    try:
        eventually(lambda: finished(court, [id]))
        sleeper.send_signal(signal.SIGCONT)
        again = court.trigger("flow")
        eventually(lambda: finished(court, [again]))
    finally:
        kill(sleeper)
        kill(other)
    assert set(court.starts().values()) == {1}
    assert court.run(id)["status"] == court.run(again)["status"] == "success"

"""The fork server itself is killed at any moment, and halted; the ledger is the judge."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from .judge import Court, eventually, kill
from .test_kills import finished
from .test_kills import shim_of as parent_of

pytestmark = pytest.mark.slow


def servers_of(scheduler: int) -> list[int]:
    """The fork servers that the scheduler has started and that live, if only halted."""
    pids = [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]
    return [pid for pid in pids if is_server(pid) and parent_of(pid) == scheduler]


def is_server(pid: int) -> bool:
    try:
        # Of a dead process nothing is left there.
        return b"ork.worker.pool.fork_server" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


@pytest.mark.parametrize("isolation", ["fork", "shared"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_killing_or_halting_fork_servers_again_and_again_starts_each_attempt_exactly_once(
    tmp_path: Path, number: signal.Signals, isolation: str
) -> None:
    """P3, P4, P5, P6: functions and commands, a server killed or halted whenever something has started."""
    court = Court(tmp_path, {"ORK_ISOLATION": isolation})
    tasks = {f"f{n}": court.function(0.1, **({"depends_on": [f"f{n - 1}"]} if n else {})) for n in range(4)}
    tasks |= {f"c{n}": court.task(0.1, **({"depends_on": [f"c{n - 1}"]} if n else {})) for n in range(4)}
    court.write_workflow("flow", tasks)
    assert court.ork("deploy", "flow.yaml").returncode == 0
    ids = [court.trigger("flow") for _ in range(4)]
    scheduler = court.start("scheduler")
    harmed = set()
    try:
        for _ in range(12):
            before = len(court.ledger())
            eventually(lambda n=before: len(court.ledger()) > n or finished(court, ids), 30)
            for server in servers_of(scheduler.pid):
                os.kill(server, number)
                harmed.add(server)
        eventually(lambda: finished(court, ids), 90)
    finally:
        kill(scheduler)
        for server in filter(is_server, harmed):
            os.kill(server, signal.SIGKILL)
    assert harmed
    assert set(court.starts()) == {f"{id} {task} 1" for id in ids for task in tasks}
    assert set(court.starts().values()) == {1}
    assert court.overlaps() == []
    assert {court.run(id)["status"] for id in ids} == {"success"}
    eventually(lambda: not court.processes())

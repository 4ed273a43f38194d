"""Leaving a run that is being cancelled: nobody is left but the workers, and they see it through."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ork.objects.opening import open_objects
from tests.acceptance.waiting import wait_until
from tests.integration.workshop import is_alive

# A main process and a child in a session of its own, neither of which heeds SIGTERM.
STUBBORN = """
name: stubborn
tasks:
  a:
    command: [sh, -c, "trap '' TERM; setsid sh -c 'echo $$ > inner; sleep 600' & echo $$ > outer; while true; do sleep 0.1; done"]
"""


@pytest.mark.parametrize("leaves", ["by a second Ctrl-C", "by kill -9"])
def test_a_cancelled_task_that_heeds_no_signal_is_killed_without_a_scheduler(
    tmp_path: Path, plain_environment: dict[str, str], leaves: str
) -> None:
    (tmp_path / "workflow.yaml").write_text(STUBBORN)
    said = tmp_path / "said"
    run = subprocess.Popen(
        [sys.executable, "-m", "ork", "run"],
        cwd=tmp_path,
        env={**plain_environment, "ORK_STOP_GRACE_SECONDS": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=said.open("w"),
    )
    pids = [tmp_path / "inner", tmp_path / "outer"]
    wait_until(lambda: all(path.exists() and path.read_text().strip() for path in pids))
    run.send_signal(signal.SIGINT)
    if leaves == "by a second Ctrl-C":
        wait_until(lambda: "cancelling run" in said.read_text())
        run.send_signal(signal.SIGINT)
    else:
        wait_until(
            lambda: any(".stop.json" in key for key in open_objects(f"file:{tmp_path}/.ork/objects").list("runs"))
        )
        run.kill()
    assert run.wait(60) in (130, -signal.SIGKILL)
    for path in pids:
        wait_until(lambda path=path: not is_alive(int(path.read_text())))  # type: ignore[misc]

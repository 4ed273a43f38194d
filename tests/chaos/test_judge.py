"""The judge of the chaos tests is strong enough: where the guard is taken away, it sees what went wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import ork

from .judge import Court, eventually, kill

pytestmark = pytest.mark.slow

ENTRY = Path(__file__).with_name("without_guard.py")


def start_scheduler(court: Court, mode: str) -> subprocess.Popen[bytes]:
    judged = {
        "JUDGED_FOLDER": str(court.folder / "judged"),
        "JUDGED_SOURCE": os.path.dirname(os.path.dirname(ork.__file__)),
    }
    return subprocess.Popen(
        [sys.executable, str(ENTRY), mode, "scheduler"],
        cwd=court.folder,
        env=court.environment() | judged,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


@pytest.mark.parametrize("mode", ["gate", "open"])
def test_a_second_start_is_harmless_with_the_gate_and_seen_by_the_ledger_without(tmp_path: Path, mode: str) -> None:
    """P3: the very same careless scheduler, with and without the start gate."""
    court = Court(tmp_path)
    court.write_workflow("flow", {"a": court.task(3.0)})
    court.ork("deploy", "flow.yaml")
    id = court.trigger("flow")
    first = start_scheduler(court, mode)
    eventually(lambda: court.starts())
    kill(first)
    launches = court.folder / "judged" / "launches"
    second = start_scheduler(court, mode)
    try:
        eventually(lambda: len(launches.read_text().splitlines()) == 2)
        eventually(lambda: court.run(id)["status"] in ("success", "failed"))
        eventually(lambda: not court.processes())
    finally:
        kill(second)
    if mode == "gate":
        assert court.starts() == {f"{id} a 1": 1}
        assert court.overlaps() == []
    else:
        assert court.starts() == {f"{id} a 1": 2}
        assert court.overlaps() == [f"{id} a 1"]

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from ork.bench.processes import MeasuredProcessError, lean_floor, run


@pytest.mark.parametrize("name", ["chain", "fanout", "commands", "shared", "latency", "engine", "interpreters"])
def test_a_floor_really_does_the_work_it_stands_for(name: str, tmp_path: Path) -> None:
    assert lean_floor(name, 12, tmp_path) > 0
    [folder] = tmp_path.iterdir()
    with sqlite3.connect(folder / "floor.db") as db:
        assert db.execute("SELECT status, count(*) FROM task GROUP BY 1").fetchall() == [("success", 12)]
        assert db.execute("SELECT status, count(*) FROM attempt GROUP BY 1").fetchall() == [("success", 12)]


@pytest.mark.parametrize("name", ["chain", "fanout"])
def test_a_forked_task_leaves_the_documents_of_the_protocol(name: str, tmp_path: Path) -> None:
    lean_floor(name, 3, tmp_path)
    left = sorted(path.name for path in tmp_path.glob("floor-*/2/*"))
    assert left == ["gate.json", "log", "output.json", "status.json"]


def test_a_process_is_measured_with_what_it_used(tmp_path: Path) -> None:
    ended = run((sys.executable, "-c", "print('x' * 200_000)"), tmp_path)
    assert len(ended.stdout) == 200_001
    assert ended.seconds > 0
    assert ended.rss_mb > 1


def test_a_process_that_fails_is_not_measured(tmp_path: Path) -> None:
    with pytest.raises(MeasuredProcessError, match="ended with 3: out of luck"):
        run((sys.executable, "-c", "import sys; print('out of luck', file=sys.stderr); sys.exit(3)"), tmp_path)


def test_what_is_being_measured_ends_with_whoever_measures_it(tmp_path: Path) -> None:
    code = (
        f"from pathlib import Path; from ork.bench.processes import run; run(('sleep', '300'), Path({str(tmp_path)!r}))"
    )
    measuring = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    tasks = Path(f"/proc/{measuring.pid}/task")
    while len(list(tasks.iterdir())) < 2:  # it waits, and its alarm is set
        assert measuring.poll() is None
    children = (tasks / str(measuring.pid) / "children").read_text().split()
    measuring.send_signal(signal.SIGINT)
    assert measuring.wait(30) != 0
    assert not Path(f"/proc/{children[0]}").exists()

"""A special file, or a huge hole, in place of an attempt's documents: only its own run suffers, and the loop goes on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.waiting import wait_until
from tests.serving import start_ork

pytestmark = pytest.mark.slow

HELD = "name: held\ntasks:\n  a: {command: [sh, -c, 'while [ ! -e go ]; do sleep 0.05; done']}\n"
QUICK = "name: quick\ntasks:\n  a: {command: 'true'}\n  b: {command: 'true', depends_on: [a]}\n"
MOST_KILOBYTES = 300_000


class Installation:
    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder = folder
        self.environment = environment
        self.scheduler: subprocess.Popen[str] | None = None

    def ork(self, *words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "ork", *words], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert done.returncode in (0, 1), done.stderr
        return done.stdout

    def show(self, run: str) -> Any:
        return json.loads(self.ork("show", run, "--json"))

    def start(self) -> None:
        self.scheduler = start_ork(self.folder, self.environment, "scheduler")
        assert self.scheduler.stdout is not None
        assert "ready" in self.scheduler.stdout.readline()

    def peak_kilobytes(self) -> int:
        assert self.scheduler is not None
        status = Path(f"/proc/{self.scheduler.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0])


@pytest.fixture
def installation(tmp_path: Path, plain_environment: dict[str, str]) -> Iterator[Installation]:
    (tmp_path / "held.yaml").write_text(HELD)
    (tmp_path / "quick.yaml").write_text(QUICK)
    made = Installation(tmp_path, {**plain_environment, "ORK_STORE": f"sqlite:{tmp_path}/.ork/ork.db"})
    made.ork("deploy", "held.yaml", "quick.yaml")
    yield made
    (tmp_path / "go").touch()
    if made.scheduler is not None:
        made.scheduler.kill()
        made.scheduler.communicate()


def begin(installation: Installation) -> str:
    """A run that holds, with a scheduler that looks after it."""
    installation.start()
    run = installation.ork("trigger", "held").split()[0]
    wait_until(lambda: any(task["status"] == "running" for task in installation.show(run)["tasks"]))
    return run


def journal_of(installation: Installation, run: str) -> Path:
    return installation.folder / ".ork/objects/runs" / run / ".ork-journal"


def hole(path: Path) -> None:
    os.truncate(path, 2 << 30)


def fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def device(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def shorter(path: Path) -> None:
    os.truncate(path, 1)


@pytest.mark.parametrize("damage", [hole, fifo, directory, device])
def test_a_run_whose_journal_is_damaged_is_set_aside_and_the_others_end(
    installation: Installation, damage: Callable[[Path], None]
) -> None:
    run = begin(installation)
    damage(journal_of(installation, run))
    other = installation.ork("trigger", "quick").split()[0]
    wait_until(lambda: installation.show(other)["status"] == "success", 60)
    wait_until(lambda: installation.show(run)["status"] == "paused", 60)
    assert installation.show(run)["note"].startswith("set aside: the run's journal ")
    assert installation.peak_kilobytes() < MOST_KILOBYTES
    assert run in installation.ork("status", "--json")


def test_a_journal_that_was_cut_off_stops_nobody(installation: Installation) -> None:
    """What was lost may not be missed: the run ends or is set aside."""
    run = begin(installation)
    shorter(journal_of(installation, run))
    other = installation.ork("trigger", "quick").split()[0]
    wait_until(lambda: installation.show(other)["status"] == "success", 60)
    (installation.folder / "go").touch()
    wait_until(lambda: installation.show(run)["status"] in ("success", "failed", "paused"), 60)


def test_a_fifo_in_place_of_a_status_blocks_nobody(tmp_path: Path, plain_environment: dict[str, str]) -> None:
    """With files instead of journals."""
    objects = tmp_path / "objects"
    made = Installation(tmp_path, {**plain_environment, "ORK_OBJECTS": f"file:{objects}"})
    (tmp_path / "held.yaml").write_text(HELD)
    (tmp_path / "quick.yaml").write_text(QUICK)
    made.ork("deploy", "held.yaml", "quick.yaml")
    try:
        run = begin(made)
        (status,) = (objects / "runs" / run).glob("*status.json")
        status.unlink()
        os.mkfifo(status)
        other = made.ork("trigger", "quick").split()[0]
        wait_until(lambda: made.show(other)["status"] == "success", 60)
        (tmp_path / "go").touch()
        wait_until(lambda: made.show(run)["status"] == "success", 60)
    finally:
        (tmp_path / "go").touch()
        if made.scheduler is not None:
            made.scheduler.kill()
            made.scheduler.communicate()

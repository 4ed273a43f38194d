"""A store that is broken for good: told once, with what to do, and nobody goes on as if it were not."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.acceptance.waiting import wait_until

OrkCli = Callable[..., "subprocess.CompletedProcess[str]"]
HELD = "name: held\ntasks:\n  a: {command: [sh, -c, 'echo begun >> ledger; while [ ! -e go ]; do sleep 0.05; done']}\n"


class Started:
    """`ork …` in the background, what it says in a file."""

    def __init__(self, folder: Path, environment: dict[str, str], *args: str) -> None:
        self._said = folder / "said"
        self.process = subprocess.Popen(
            [sys.executable, "-m", "ork", *args],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._said.open("w"),
        )

    def said(self) -> str:
        return self._said.read_text()


@pytest.fixture
def start(tmp_path: Path, plain_environment: dict[str, str]) -> Iterator[Callable[..., Started]]:
    (tmp_path / "workflow.yaml").write_text(HELD)
    started: list[Started] = []

    def begin(*args: str, **environment: str) -> Started:
        started.append(Started(tmp_path, {**plain_environment, **environment}, *args))
        return started[-1]

    yield begin
    (tmp_path / "go").touch()
    for each in started:
        if each.process.poll() is None:
            each.process.kill()
        each.process.wait()


def execute(folder: Path, statement: str) -> None:
    store = sqlite3.connect(folder / ".ork/ork.db", isolation_level=None)
    store.execute("PRAGMA busy_timeout = 5000")
    store.execute(statement)
    store.close()


def test_a_run_whose_store_lost_a_table_ends_with_the_error(tmp_path: Path, start: Callable[..., Started]) -> None:
    run = start("run")
    wait_until(lambda: (tmp_path / "ledger").exists())
    execute(tmp_path, "DROP TABLE attempts")
    (tmp_path / "go").touch()
    assert run.process.wait(60) == 1
    assert run.said().count("no such table") == 1, run.said()
    assert "error: The store" in run.said()
    assert "works again" not in run.said()


def test_a_scheduler_whose_store_lost_a_table_ends_with_the_error_and_a_hint(
    tmp_path: Path, ork_cli: OrkCli, start: Callable[..., Started]
) -> None:
    assert ork_cli("deploy", "workflow.yaml", cwd=tmp_path).returncode == 0
    scheduler = start("scheduler")
    wait_until(lambda: (tmp_path / ".ork/ork.db").exists())
    assert ork_cli("trigger", "held", cwd=tmp_path).returncode == 0
    wait_until(lambda: (tmp_path / "ledger").exists())
    execute(tmp_path, "DROP TABLE attempts")
    (tmp_path / "go").touch()
    assert scheduler.process.wait(60) == 1
    *_, error, hint = scheduler.said().splitlines()
    assert error.startswith("error: The store")
    assert "no such table" in error
    assert hint.strip()
    assert "works again" not in scheduler.said()


@pytest.mark.parametrize("command", ["run", "scheduler"])
def test_a_signal_ends_a_service_whose_store_fails(
    tmp_path: Path, ork_cli: OrkCli, start: Callable[..., Started], command: str
) -> None:
    """A store that may not be written for now: the service goes on trying, until it is told to end."""
    assert ork_cli("deploy", "workflow.yaml", cwd=tmp_path).returncode == 0
    if command == "scheduler":
        ork_cli("trigger", "held", cwd=tmp_path)
    service = start(command, PYTHONPATH=f"{_failing_store(tmp_path)}")
    wait_until(lambda: (tmp_path / "ledger").exists())
    (tmp_path / "full").touch()
    (tmp_path / "go").touch()
    wait_until(lambda: "no space left" in service.said())
    service.process.send_signal(signal.SIGTERM)
    assert service.process.wait(60) in (0, 130)
    assert "works again" not in service.said()
    assert service.said().count("no space left") <= 5, service.said()


def _failing_store(folder: Path) -> Path:
    """A folder that, first on the import path, makes every commit fail while the file `full` is there."""
    place = folder / "sabotage"
    place.mkdir()
    (place / "sitecustomize.py").write_text(
        "import os\n"
        "from ork.errors import StoreUnavailableError\n"
        "from ork.state.sqlite import connection\n"
        "honest = connection.Connection.run\n"
        "def run(self, name, values=()):\n"
        f"    if name == 'begin_writing' and os.path.exists({str(folder / 'full')!r}):\n"
        "        raise StoreUnavailableError('no space left')\n"
        "    return honest(self, name, values)\n"
        "connection.Connection.run = run\n"
    )
    return place

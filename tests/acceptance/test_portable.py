"""Ork without what only Linux has (`docs/portable.md`): ORK_SYSTEM=portable forces that here, as macOS would need it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.acceptance.waiting import wait_until

PORTABLE = {"ORK_SYSTEM": "portable"}

HELD = """
name: held
tasks:
  function: {file: held.py, function: wait, retries: 1}
  program: {command: [sh, -c, 'echo $$ > program.pid; echo begun >> program.ledger; while [ ! -e go ]; do sleep 0.05; done']}
  last: {command: [sh, -c, 'sleep 600 & echo $! > left.pid'], depends_on: [function, program]}
"""
CODE = """
import os, time

def wait():
    with open("function.ledger", "a") as ledger:
        ledger.write("begun\\n")
    with open("function.pid", "w") as file:
        file.write(f"{os.getpid()} {os.getppid()}")
    while not os.path.exists("go"):
        time.sleep(0.05)
    return sorted(name for name in ("memfd_create", "pidfd_open") if hasattr(os, name))
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "held.yaml").write_text(HELD)
    (tmp_path / "held.py").write_text(CODE)
    return tmp_path


@contextmanager
def running(project: Path, environment: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """`ork run` of the workflow, with both tasks begun."""
    command = [sys.executable, "-m", "ork", "run", "held.yaml"]
    process = subprocess.Popen(
        command,
        cwd=project,
        env={**environment, **PORTABLE},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        wait_until(lambda: all((project / f"{each}.pid").exists() for each in ("function", "program")))
        yield process
    finally:
        (project / "go").touch()
        process.kill()
        process.wait()


@contextmanager
def scheduler(project: Path, environment: dict[str, str]) -> Iterator[None]:
    process = subprocess.Popen([sys.executable, "-m", "ork", "scheduler"], cwd=project, env={**environment, **PORTABLE})
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def pids(project: Path, name: str) -> list[int]:
    wait_until(lambda: (project / f"{name}.pid").read_text())
    return [int(word) for word in (project / f"{name}.pid").read_text().split()]


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_a_run_whose_scheduler_is_killed_goes_on_and_nothing_runs_twice(
    project: Path, ork_cli: Callable[..., subprocess.CompletedProcess[str]], plain_environment: dict[str, str]
) -> None:
    with running(project, plain_environment) as process:
        process.kill()
        process.wait()
        assert is_alive(pids(project, "program")[0]), "workers outlive the scheduler"
        (project / "go").touch()
        with scheduler(project, plain_environment):
            done = ork_cli("watch", "@last", cwd=project, env=PORTABLE)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (project / "function.ledger").read_text() == (project / "program.ledger").read_text() == "begun\n"
    assert json.loads(ork_cli("output", "@last", "function", cwd=project, env=PORTABLE).stdout) == []
    (left,) = pids(project, "left")
    assert not is_alive(left), "what a program leaves behind is ended with it"


def test_the_processes_of_a_killed_worker_end_and_its_task_is_retried(
    project: Path, ork_cli: Callable[..., subprocess.CompletedProcess[str]], plain_environment: dict[str, str]
) -> None:
    with running(project, plain_environment) as process:
        function, worker = pids(project, "function")
        os.kill(worker, signal.SIGKILL)
        wait_until(lambda: not is_alive(function))
        wait_until(lambda: (project / "function.ledger").read_text() == "begun\nbegun\n")
        (project / "go").touch()
        said, _ = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert (project / "program.ledger").read_text() == "begun\n"


def test_an_interrupted_run_leaves_no_process(
    project: Path, ork_cli: Callable[..., subprocess.CompletedProcess[str]], plain_environment: dict[str, str]
) -> None:
    with running(project, plain_environment) as process:
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=120)
        assert process.returncode == 130, said
        wait_until(lambda: not any(is_alive(pid) for name in ("function", "program") for pid in pids(project, name)))


def test_doctor_says_what_is_weaker(tmp_path: Path, ork_cli: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    found = ork_cli("doctor", cwd=tmp_path, env=PORTABLE).stdout
    assert "each task starts its own interpreter" in found
    assert "fork server" not in found


def test_windows_is_told_of_wsl(tmp_path: Path, plain_environment: dict[str, str]) -> None:
    script = "import sys; from ork.cli.main import main; sys.platform = 'win32'; main(['run', 'x.yaml'])"
    done = subprocess.run([sys.executable, "-c", script], env=plain_environment, capture_output=True, text=True)
    assert done.returncode == 1
    assert "WSL" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.soak
def test_the_acceptance_suite_passes(tree: Path, tmp_path: Path) -> None:
    """The whole of it; `make portable` runs the same with several processes."""
    words = ["-q", "-p", "no:cacheprovider", f"--basetemp={tmp_path / 'all'}", "tests/acceptance"]
    done = subprocess.run([sys.executable, "-m", "pytest", *words], cwd=tree, env={**os.environ, **PORTABLE})
    assert done.returncode == 0

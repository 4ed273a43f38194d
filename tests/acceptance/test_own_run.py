"""`ork run` without a scheduler works on its own run: others that wait are left alone, what died is gone on with."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.acceptance.waiting import wait_until

OrkCli = Callable[..., "subprocess.CompletedProcess[str]"]


def write(folder: Path, name: str, *tasks: str) -> str:
    (folder / f"{name}.yaml").write_text(f"name: {name}\ntasks:\n" + "".join(f"  {task}\n" for task in tasks))
    return f"{name}.yaml"


def start(folder: Path, environment: dict[str, str], *args: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "ork", *args],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def runs(ork_cli: OrkCli, folder: Path) -> dict[str, str]:
    """Statuses by workflow."""
    shapes: list[dict[str, Any]] = json.loads(ork_cli("runs", "--json", cwd=folder).stdout)["runs"]
    return {shape["workflow"]: shape["status"] for shape in shapes}


def test_runs_of_others_that_wait_are_neither_started_nor_left_behind(tmp_path: Path, ork_cli: OrkCli) -> None:
    other = write(tmp_path, "other", "a: {command: [sh, -c, 'touch other_ran; sleep 5']}")
    mine = write(tmp_path, "mine", "a: {command: 'true'}", "b: {command: sleep 0.2, depends_on: [a]}")
    assert ork_cli("deploy", other, cwd=tmp_path).returncode == 0
    assert ork_cli("trigger", "other", cwd=tmp_path).returncode == 0
    done = ork_cli("run", mine, cwd=tmp_path)
    assert (done.returncode, "other" in done.stderr) == (0, False)
    assert runs(ork_cli, tmp_path) == {"mine": "success", "other": "pending"}
    assert not (tmp_path / "other_ran").exists()


def test_what_the_run_needs_is_worked_on_however_deep(tmp_path: Path, ork_cli: OrkCli) -> None:
    write(tmp_path, "lowest", "a: {command: 'true'}")
    write(tmp_path, "middle", "a: {workflow: lowest}")
    top = write(tmp_path, "top", "a: {workflow: middle}", "b: {workflow: lowest, depends_on: [a]}")
    assert ork_cli("run", top, "--timeout", "60", cwd=tmp_path).returncode == 0
    assert set(runs(ork_cli, tmp_path).values()) == {"success"}


def test_a_run_whose_process_was_killed_is_gone_on_with_aloud_and_to_its_end(
    tmp_path: Path, ork_cli: OrkCli, plain_environment: dict[str, str]
) -> None:
    slow = write(
        tmp_path,
        "slow",
        "a: {command: [sh, -c, 'touch begun; while [ ! -e go ]; do sleep 0.05; done']}",
        "b: {command: touch over, depends_on: [a]}",
    )
    mine = write(tmp_path, "mine", "a: {command: touch go}")
    first = start(tmp_path, plain_environment, "run", slow)
    wait_until((tmp_path / "begun").exists)
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    done = ork_cli("run", mine, cwd=tmp_path)
    assert done.returncode == 0
    assert "also continuing run " in done.stderr
    assert " of slow: its scheduler is gone" in done.stderr
    assert runs(ork_cli, tmp_path) == {"mine": "success", "slow": "success"}
    assert (tmp_path / "over").exists()


def test_ctrl_c_while_staying_for_others_leaves_them_running(
    tmp_path: Path, ork_cli: OrkCli, plain_environment: dict[str, str]
) -> None:
    slow = write(tmp_path, "slow", "a: {command: [sh, -c, 'touch begun; while [ ! -e go ]; do sleep 0.05; done']}")
    mine = write(tmp_path, "mine", "a: {command: 'true'}")
    first = start(tmp_path, plain_environment, "run", slow)
    wait_until((tmp_path / "begun").exists)
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    second = start(tmp_path, plain_environment, "run", mine)
    assert second.stderr is not None
    said = ""
    while "waiting until the other runs" not in said:
        line = second.stderr.readline()
        assert line, said
        said += line
    second.send_signal(signal.SIGINT)
    assert second.wait(30) == 0
    assert runs(ork_cli, tmp_path) == {"mine": "success", "slow": "running"}
    (tmp_path / "go").touch()
    assert ork_cli("tick", "--stay", cwd=tmp_path).returncode == 0
    assert runs(ork_cli, tmp_path)["slow"] == "success"


def test_a_retry_works_on_its_own_run_only(tmp_path: Path, ork_cli: OrkCli) -> None:
    other = write(tmp_path, "other", "a: {command: touch other_ran}")
    mine = write(tmp_path, "mine", "a: {command: test -e ready}")
    assert ork_cli("run", mine, cwd=tmp_path).returncode == 1
    (tmp_path / "ready").touch()
    ork_cli("deploy", other, cwd=tmp_path)
    ork_cli("trigger", "other", cwd=tmp_path)
    failed = next(
        r["id"] for r in json.loads(ork_cli("runs", "--json", cwd=tmp_path).stdout)["runs"] if r["workflow"] == "mine"
    )
    assert ork_cli("retry", failed, cwd=tmp_path).returncode == 0
    assert runs(ork_cli, tmp_path) == {"mine": "success", "other": "pending"}

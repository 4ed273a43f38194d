"""`ork run` as a person meets it: the real program in an empty folder."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.waiting import wait_until

OrkCli = Callable[..., "subprocess.CompletedProcess[str]"]

FAILING = """\
def extract():
    return {"rows": 12}

def transform(extract):
    return {"active": extract["rows"] / 0}

def load(transform):
    return None
"""
THREE = """\
name: hello
tasks:
  extract: {file: tasks.py, function: extract}
  transform: {file: tasks.py, function: transform, depends_on: [extract]}
  load: {file: tasks.py, function: load, depends_on: [transform]}
"""


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        (folder / name.replace("_yaml", ".yaml").replace("_py", ".py")).write_text(text)


def sleeper(seconds: float = 60) -> str:
    return f"name: slow\ntasks:\n  nap: {{command: [sh, -c, 'touch begun; exec sleep {seconds}']}}\n"


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


def show(ork_cli: OrkCli, folder: Path, run: str = "@last") -> dict[str, Any]:
    shape: dict[str, Any] = json.loads(ork_cli("show", run, "--json", cwd=folder).stdout)
    return shape


def test_a_new_project_runs_at_once_and_its_tests_pass(tmp_path: Path, ork_cli: OrkCli) -> None:
    made = ork_cli("init", "hello", cwd=tmp_path)
    assert made.returncode == 0
    assert made.stdout.splitlines()[-1] == "Next:  ork run   (in hello/)"
    folder = tmp_path / "hello"
    done = ork_cli("run", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "3 succeeded" in done.stdout
    assert "✓ extract" in done.stderr
    assert '{"rows": 12}' in done.stderr
    assert (folder / "out/active.json").read_text() == '{"active": 9}'
    tests = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:randomly"], cwd=folder, capture_output=True)
    assert tests.returncode == 0


def test_init_never_overwrites(tmp_path: Path, ork_cli: OrkCli) -> None:
    (tmp_path / "tasks.py").write_text("mine")
    done = ork_cli("init", ".", cwd=tmp_path)
    assert done.returncode == 4
    assert (tmp_path / "tasks.py").read_text() == "mine"
    assert not (tmp_path / "workflow.yaml").exists()


def test_init_leaves_nothing_where_it_cannot_write_everything(tmp_path: Path) -> None:
    code = "import resource, runpy; resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500)); runpy.run_module('ork.__main__')"
    done = subprocess.run([sys.executable, "-c", code, "init", "hello"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    assert "cannot write to hello: File too large; nothing was left there" in done.stderr
    assert list((tmp_path / "hello").iterdir()) == []


def test_a_failing_function_is_explained_in_at_most_fifteen_lines(tmp_path: Path, ork_cli: OrkCli) -> None:
    write(tmp_path, workflow_yaml=THREE, tasks_py=FAILING)
    done = ork_cli("run", cwd=tmp_path)
    assert done.returncode == 1
    printed = (done.stderr + done.stdout).splitlines()
    assert len(printed) <= 15
    text = done.stderr
    assert "ZeroDivisionError: division by zero   attempt 1 of 1" in text
    assert "tasks.py:5 in transform" in text
    assert '5 |     return {"active": extract["rows"] / 0}' in text
    assert "~~~~~~~~~~~~~~~~^~~" in text
    assert "⊘ load         skipped: transform failed" in text
    assert "worker" not in text
    assert "Traceback" not in text


def test_a_fixed_run_goes_on_where_it_failed(tmp_path: Path, ork_cli: OrkCli) -> None:
    write(tmp_path, workflow_yaml=THREE, tasks_py=FAILING)
    ork_cli("run", cwd=tmp_path)
    write(tmp_path, tasks_py=FAILING.replace("/ 0", "/ 1.0"))
    done = ork_cli("retry", "@last", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    shape = show(ork_cli, tmp_path)
    assert shape["status"] == "success"
    assert {task["name"]: task["attempt"] for task in shape["tasks"]} == {"extract": 1, "transform": 2, "load": 1}


def test_a_mistake_is_shown_with_its_place_and_nothing_runs(tmp_path: Path, ork_cli: OrkCli) -> None:
    write(tmp_path, workflow_yaml="name: x\ntasks:\n  a: {command: 'true', depends_on: [b]}\n")
    done = ork_cli("run", cwd=tmp_path)
    assert done.returncode == 2
    assert "error[ORK201]" in done.stderr
    assert "--> workflow.yaml:3:" in done.stderr
    assert done.stderr.splitlines()[-1] == "1 error. Nothing was run."
    assert not (tmp_path / ".ork").exists()


def test_the_result_as_json_holds_the_whole_run(tmp_path: Path, ork_cli: OrkCli) -> None:
    write(tmp_path, f_yaml="name: j\nparams: {day: {type: date}}\ntasks:\n  a: {command: [echo, '{\"x\": 1}']}\n")
    done = ork_cli("run", "f.yaml", "-p", "day=2026-01-01", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    run = json.loads(done.stdout)
    assert (run["workflow"], run["status"], run["trigger"]) == ("j", "success", "manual")
    assert run["params"] == {"day": "2026-01-01"}
    assert run["tasks"][0]["status"] == "success"
    assert run["tasks"][0]["attempts"][0]["exit_code"] == 0


def test_a_wrong_param_is_wrong_use(tmp_path: Path, ork_cli: OrkCli) -> None:
    write(tmp_path, f_yaml="name: j\nparams: {day: {type: date}}\ntasks:\n  a: {command: 'true'}\n")
    assert ork_cli("run", "f.yaml", "-p", "day=x", cwd=tmp_path).returncode == 2
    assert ork_cli("run", "f.yaml", cwd=tmp_path).returncode == 2
    assert ork_cli("run", "f.yaml", "-p", "nonsense", cwd=tmp_path).returncode == 2
    assert not (tmp_path / ".ork").exists()


@pytest.mark.parametrize(("args", "code"), [(["run", "nothing.yaml"], 3), (["run", "unknown"], 3), (["run"], 2)])
def test_what_is_not_there_cannot_be_run(tmp_path: Path, ork_cli: OrkCli, args: list[str], code: int) -> None:
    done = ork_cli(*args, cwd=tmp_path)
    assert done.returncode == code
    assert done.stderr.startswith("error: ")


def test_a_known_workflow_runs_by_its_name(tmp_path: Path, ork_cli: OrkCli) -> None:
    write(tmp_path, f_yaml="name: known\ntasks:\n  a: {command: 'true'}\n")
    assert ork_cli("deploy", "f.yaml", cwd=tmp_path).returncode == 0
    assert ork_cli("run", "known", cwd=tmp_path).returncode == 0


def test_quiet_says_only_the_result(tmp_path: Path, ork_cli: OrkCli) -> None:
    write(tmp_path, workflow_yaml="name: q\ntasks:\n  a: {command: 'true'}\n")
    done = ork_cli("run", "--progress", "quiet", cwd=tmp_path)
    assert done.stdout.startswith("✓ success in ")
    assert "✓ a" not in done.stderr


def test_json_progress_is_one_object_per_change(tmp_path: Path, ork_cli: OrkCli) -> None:
    write(tmp_path, workflow_yaml="name: q\ntasks:\n  a: {command: 'true'}\n")
    done = ork_cli("run", "--progress", "json", "--json", cwd=tmp_path)
    events = [json.loads(line) for line in done.stderr.splitlines() if line.strip()]
    assert events[-1]["status"] == "success"
    assert json.loads(done.stdout)["status"] == "success"


def test_the_timeout_cancels_a_run_that_is_ours(tmp_path: Path, ork_cli: OrkCli) -> None:
    write(tmp_path, workflow_yaml=sleeper())
    done = ork_cli("run", "--timeout", "0.5", cwd=tmp_path)
    assert done.returncode == 124
    assert "--timeout has passed" in done.stderr
    assert show(ork_cli, tmp_path)["status"] == "cancelled"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_cancels_the_run_and_ends_its_processes(
    tmp_path: Path, ork_cli: OrkCli, plain_environment: dict[str, str], number: int
) -> None:
    write(tmp_path, workflow_yaml=sleeper())
    with start(tmp_path, plain_environment, "run") as process:
        wait_until(lambda: (tmp_path / "begun").exists())
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "cancelling run" in said
    assert show(ork_cli, tmp_path)["status"] == "cancelled"


def test_a_second_interrupt_leaves_at_once(tmp_path: Path, ork_cli: OrkCli, plain_environment: dict[str, str]) -> None:
    stubborn = (
        "name: s\ntasks:\n  nap: {command: [sh, -c, 'trap \"\" TERM; touch begun; while :; do sleep 0.1; done']}\n"
    )
    write(tmp_path, workflow_yaml=stubborn)
    environment = {**plain_environment, "ORK_STOP_GRACE_SECONDS": "3600"}
    with start(tmp_path, environment, "run") as process:
        wait_until(lambda: (tmp_path / "begun").exists())
        process.send_signal(signal.SIGINT)
        wait_until(lambda: show(ork_cli, tmp_path)["status"] != "pending" and _cancel_is_known(ork_cli, tmp_path))
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 130
    assert show(ork_cli, tmp_path)["status"] == "running"
    _end_everything(tmp_path)
    assert ork_cli("cancel", "@last", cwd=tmp_path).returncode in (0, 4)
    wait_until(lambda: show(ork_cli, tmp_path)["status"] == "cancelled")


def _cancel_is_known(ork_cli: OrkCli, folder: Path) -> bool:
    return "being cancelled" in ork_cli("why", "@last", cwd=folder).stdout


def _end_everything(folder: Path) -> None:
    """Kills what the stubborn task left, found by its working folder."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and entry.name != str(os.getpid()):
            try:
                if os.readlink(entry / "cwd") == str(folder):
                    os.kill(int(entry.name), signal.SIGKILL)
            except OSError:
                continue


def test_a_run_killed_with_its_process_is_finished_by_the_next_scheduler(
    tmp_path: Path, ork_cli: OrkCli, plain_environment: dict[str, str]
) -> None:
    task = "[sh, -c, 'echo started >> ledger; while [ ! -e go ]; do sleep 0.05; done; echo 7']"
    write(tmp_path, workflow_yaml=f"name: k\ntasks:\n  a: {{command: {task}}}\n")
    with start(tmp_path, plain_environment, "run") as process:
        wait_until(lambda: (tmp_path / "ledger").exists())
        process.kill()
    assert "no scheduler is running on this store" in ork_cli("why", "@last", cwd=tmp_path).stdout
    (tmp_path / "go").touch()
    wait_until(lambda: _tick_until_final(ork_cli, tmp_path))
    run = show(ork_cli, tmp_path)
    assert (run["status"], run["tasks"][0]["output"], run["tasks"][0]["attempt"]) == ("success", 7, 1)
    assert (tmp_path / "ledger").read_text() == "started\n"


def _tick_until_final(ork_cli: OrkCli, folder: Path) -> bool:
    report = json.loads(ork_cli("tick", cwd=folder).stdout)
    assert set(report) == {"steps", "launched", "finished", "next_wake"}
    return show(ork_cli, folder)["status"] in ("success", "failed")

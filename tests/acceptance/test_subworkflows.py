"""Tasks that run another workflow: params in, output back, and one fate."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.waiting import wait_until

OrkCli = Callable[..., "subprocess.CompletedProcess[str]"]

PARENT = (
    "name: parent\ntasks:\n  call: {workflow: child, inputs: {n: 3}}\n  after: {command: echo, depends_on: [call]}\n"
)
CHILD = "name: child\nparams: {n: int}\ntasks:\n  work: {command: [sh, -c, 'echo $N'], env: {N: {ref: params.n}}}\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "workflow.yaml").write_text(PARENT)
    (tmp_path / "child.yaml").write_text(CHILD)
    return tmp_path


@pytest.fixture
def run(project: Path, ork_cli: OrkCli) -> Callable[..., tuple[int, dict[str, Any]]]:
    def call(**environment: str) -> tuple[int, dict[str, Any]]:
        done = ork_cli("run", "--json", cwd=project, env=environment)
        assert done.stdout.strip(), done.stderr
        return done.returncode, json.loads(done.stdout)

    return call


Run = Callable[..., tuple[int, dict[str, Any]]]


def task_of(run: dict[str, Any], name: str) -> dict[str, Any]:
    return next(task for task in run["tasks"] if task["name"] == name)


def runs_of(ork_cli: OrkCli, folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(ork_cli("runs", "--json", cwd=folder).stdout)["runs"]
    return found


def test_the_output_of_the_last_task_is_the_output(run: Run, project: Path, ork_cli: OrkCli) -> None:
    code, parent = run()
    assert (code, task_of(parent, "call")["output"]) == (0, 3)
    assert sorted((each["workflow"], each["status"]) for each in runs_of(ork_cli, project)) == [
        ("child", "success"),
        ("parent", "success"),
    ]


def test_several_last_tasks_give_a_map_and_large_outputs_come_along(run: Run, project: Path) -> None:
    (project / "large.py").write_text("def main(): return ['x' * 1000] * 200\n")
    (project / "child.yaml").write_text(
        "name: child\nparams: {n: int}\ntasks:\n  a: {command: echo 1}\n  b: {file: large.py}\n"
    )
    (project / "count.py").write_text("def main(call): return [call['a'], len(call['b'])]\n")
    (project / "workflow.yaml").write_text(
        "name: parent\ntasks:\n  call: {workflow: child, inputs: {n: 3}}\n  count: {file: count.py, depends_on: [call]}\n"
    )
    code, parent = run()
    assert (code, task_of(parent, "count")["output"]) == (0, [1, 200])


def test_one_worker_is_enough_for_any_depth(run: Run, project: Path) -> None:
    (project / "child.yaml").write_text(
        "name: child\nparams: {n: int}\ntasks:\n  deeper: {workflow: leaf, inputs: {n: {ref: params.n}}}\n"
    )
    (project / "leaf.yaml").write_text(CHILD.replace("name: child", "name: leaf"))
    code, parent = run(ORK_MAX_WORKERS="1")
    assert (code, task_of(parent, "call")["output"]) == (0, 3)


def test_a_failed_child_fails_the_task_with_its_reason_and_a_retry_runs_it_anew(
    run: Run, project: Path, ork_cli: OrkCli
) -> None:
    (project / "workflow.yaml").write_text(
        PARENT.replace("inputs: {n: 3}", "inputs: {n: 3}, retries: 1, retry_delay: 0")
    )
    (project / "child.yaml").write_text(CHILD.replace("echo $N", "echo x >> tries; test $(wc -l < tries) = 2"))
    code, parent = run()
    call = task_of(parent, "call")
    assert (code, [attempt["status"] for attempt in call["attempts"]]) == (0, ["failed", "success"])
    children = [each["status"] for each in runs_of(ork_cli, project) if each["workflow"] == "child"]
    assert sorted(children) == ["failed", "success"]


def test_what_the_child_says_of_its_failure_is_said_of_the_task(run: Run, project: Path) -> None:
    (project / "child.yaml").write_text(CHILD.replace("echo $N", "exit 3"))
    code, parent = run()
    assert code == 1
    assert task_of(parent, "after")["status"] == "skipped"
    assert "of `child` failed: task `work` failed: exit code 3" in task_of(parent, "call")["error"]


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ("{workflow: chld}", "there is no workflow `chld`"),
        ("{workflow: child}", "param `n` is missing"),
        ("{workflow: child, inputs: {n: many}}", "param `n`"),
        ("{workflow: child, inputs: {n: 3, m: 4}}", "there is no param `m`"),
        ("{workflow: child, inputs: {n: {secret: HUSH}}}", "no place for one"),
    ],
)
def test_a_child_that_cannot_start_fails_the_task_and_creates_no_run(
    run: Run, project: Path, ork_cli: OrkCli, task: str, message: str
) -> None:
    (project / "workflow.yaml").write_text(f"name: parent\ntasks:\n  call: {task}\n")
    (project / ".env").write_text("HUSH=hush\n")
    code, parent = run()
    assert code == 1
    assert message in task_of(parent, "call")["error"]
    assert [each["workflow"] for each in runs_of(ork_cli, project)] == ["parent"]


def test_a_workflow_that_contains_itself_ends_at_the_tenth(run: Run, project: Path, ork_cli: OrkCli) -> None:
    (project / "workflow.yaml").write_text("name: parent\ntasks:\n  call: {workflow: child}\n")
    (project / "child.yaml").write_text("name: child\ntasks:\n  again: {workflow: child}\n")
    code, parent = run()
    assert code == 1
    assert "nested more than 10 deep: parent → child → child" in task_of(parent, "call")["error"]
    assert len([each for each in runs_of(ork_cli, project) if each["workflow"] == "child"]) == 10


def test_cancelling_the_parent_ends_the_child_and_its_processes(
    project: Path, ork_cli: OrkCli, plain_environment: dict[str, str]
) -> None:
    (project / "child.yaml").write_text(CHILD.replace("echo $N", "echo $$ > pid; exec sleep 600"))
    process = subprocess.Popen(
        [sys.executable, "-m", "ork", "run", "--json"],
        cwd=project,
        env=plain_environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_until(lambda: (project / "pid").exists() and bool((project / "pid").read_text()))
        assert ork_cli("cancel", "@last", cwd=project).returncode == 0
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert json.loads(out)["status"] == "cancelled", err
    assert {each["workflow"]: each["status"] for each in runs_of(ork_cli, project)} == {
        "parent": "cancelled",
        "child": "cancelled",
    }
    assert not Path(f"/proc/{int((project / 'pid').read_text())}").exists()


def test_a_killed_scheduler_leaves_both_to_the_next_one(
    project: Path, ork_cli: OrkCli, plain_environment: dict[str, str]
) -> None:
    (project / "child.yaml").write_text(
        CHILD.replace("echo $N", "echo x >> ledger; while [ ! -e go ]; do sleep 0.05; done; echo 5")
    )
    first = subprocess.Popen(
        [sys.executable, "-m", "ork", "run"],
        cwd=project,
        env=plain_environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_until(lambda: (project / "ledger").exists())
    first.kill()
    first.wait()
    (project / "go").touch()
    second = subprocess.Popen(
        [sys.executable, "-m", "ork", "scheduler"],
        cwd=project,
        env=plain_environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: {each["status"] for each in runs_of(ork_cli, project)} == {"success"})
    finally:
        second.terminate()
        second.wait()
    parent = json.loads(ork_cli("show", "@last", "--json", cwd=project).stdout)
    assert (parent["workflow"], task_of(parent, "call")["output"]) == ("parent", 5)
    assert (project / "ledger").read_text() == "x\n"


def test_validate_looks_at_the_file_beside_it_too(project: Path, ork_cli: OrkCli) -> None:
    (project / "child.yaml").write_text("name: child\ntasks:\n  work: {comand: echo}\n")
    done = ork_cli("validate", "--format", "concise", "workflow.yaml", cwd=project)
    assert done.returncode == 2
    assert "child.yaml:3" in done.stdout

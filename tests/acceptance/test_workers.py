"""`ork workers` and what `ork validate` says of worker configs, without any engine."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from ork.worker.supervise.limits import enforcement
from tests.conftest import OrkCli

TREE = Path(__file__).parents[2]
WORKERS = """
default: {where: docker, host: "unix:///nowhere/docker.sock", memory: 512Mi, cpu: 0.5}
here: {where: local, timeout: 90s, env: {PASSWORD: hunter2}}
"""


def test_worker_configs_are_listed_with_what_their_engines_say(ork_cli: OrkCli, tmp_path: Path) -> None:
    (tmp_path / "workers.yaml").write_text(WORKERS)
    said = ork_cli("workers", cwd=tmp_path)
    assert said.returncode == 0, said.stderr
    assert "512Mi" in said.stdout
    assert "✗ there is no container engine at unix:///nowhere/docker.sock: No such file or directory" in said.stdout
    rows = json.loads(ork_cli("workers", "--json", cwd=tmp_path).stdout)["workers"]
    assert [(row["name"], row["cpu"], row["engine"] and row["engine"]["ok"]) for row in rows] == [
        ("default", 0.5, False),
        ("here", None, None),
    ]
    assert "hunter2" not in said.stdout + json.dumps(rows)


def test_without_worker_configs_it_says_where_they_go(ork_cli: OrkCli, tmp_path: Path) -> None:
    said = ork_cli("workers", cwd=tmp_path)
    assert (said.returncode, said.stdout) == (0, "")
    assert "workers.yaml" in said.stderr


def test_a_mistake_in_workers_yaml_is_shown_and_stops_only_the_tasks_that_need_it(
    ork_cli: OrkCli, tmp_path: Path
) -> None:
    (tmp_path / "workers.yaml").write_text("heavy: {where: docker, memory: lots}\nlight: {cpu: 1}\n")
    (tmp_path / "workflow.yaml").write_text("name: w\ntasks: {a: {command: 'true', worker: light}}\n")
    said = ork_cli("run", cwd=tmp_path)
    assert said.returncode == 0, said.stderr
    assert "ORK608" in said.stderr
    assert "workers.yaml:1:32" in said.stderr
    (tmp_path / "workflow.yaml").write_text("name: w\ntasks: {a: {command: 'true', worker: heavy}}\n")
    said = ork_cli("run", cwd=tmp_path)
    assert said.returncode == 2
    assert "worker config `heavy` cannot be used: `lots` is not an amount of memory" in said.stderr
    assert ork_cli("workers", cwd=tmp_path).returncode == 2


def test_a_default_with_a_mistake_is_never_left_out_silently(ork_cli: OrkCli, tmp_path: Path) -> None:
    (tmp_path / "workers.yaml").write_text("default: {memory: lots}\n")
    (tmp_path / "workflow.yaml").write_text("name: w\ntasks: {a: {command: 'true'}}\n")
    said = ork_cli("run", cwd=tmp_path)
    assert said.returncode == 1
    assert "worker config `default` cannot be used" in said.stderr


def test_the_samples_as_printed_run_the_three_task_workflow(ork_cli: OrkCli, tmp_path: Path) -> None:
    shutil.copytree(
        TREE / "examples" / "etl", tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".ork", "out")
    )
    for name in ("workers.yaml", "locations.yaml"):
        shutil.copy(TREE / "tests" / "samples" / name, tmp_path)
    said = ork_cli("run", cwd=tmp_path)
    assert said.returncode == 0, said.stderr
    rows = json.loads(ork_cli("workers", "--json", cwd=tmp_path).stdout)["workers"]
    assert [(row["name"], row["where"], row["memory"]) for row in rows] == [
        ("default", None, 2 << 30),
        ("extract", None, 2 << 30),
        ("transform", None, 4 << 30),
    ]


def test_a_mistake_in_locations_yaml_is_told_and_stops_no_tick(ork_cli: OrkCli, tmp_path: Path) -> None:
    (tmp_path / "flows").mkdir()
    (tmp_path / "flows" / "w.yaml").write_text("name: w\ntasks: {a: {command: 'true'}}\n")
    (tmp_path / "locations.yaml").write_text("- {name: flows, path: flows}\n- {name: bad, image: 'No Image'}\n")
    said = ork_cli("tick", cwd=tmp_path)
    assert said.returncode == 0, said.stderr
    assert "is not the name of an image" in said.stderr + said.stdout
    assert "w" in ork_cli("workflows", cwd=tmp_path).stdout
    assert ork_cli("locations", cwd=tmp_path).returncode == 2


def test_a_worker_that_is_not_there_is_refused_when_the_workflow_is_validated(ork_cli: OrkCli, tmp_path: Path) -> None:
    (tmp_path / "workflow.yaml").write_text("name: w\ntasks: {a: {image: busybox, worker: hevy}}\n")
    assert "ORK606" in ork_cli("validate", "workflow.yaml", cwd=tmp_path).stderr
    (tmp_path / "workers.yaml").write_text("heavy: {where: docker}\n")
    said = ork_cli("validate", "workflow.yaml", cwd=tmp_path)
    assert said.returncode == 2
    assert "did you mean `heavy`" in said.stderr


def test_variables_and_time_of_a_local_worker_config_hold_for_its_tasks(ork_cli: OrkCli, tmp_path: Path) -> None:
    (tmp_path / "workers.yaml").write_text("here: {where: local, timeout: 1s, env: {WHO: config, WHAT: config}}\n")
    (tmp_path / "workflow.yaml").write_text(
        "name: w\ntasks:\n"
        "  told: {command: [sh, -c, 'echo \\\"$WHO $WHAT\\\"'], worker: here, env: {WHAT: task}}\n"
        "  slow: {command: [sleep, '60'], worker: here, timeout: 10m}\n".replace("\\\\", "\\")
    )
    said = ork_cli("run", cwd=tmp_path)
    assert "timed out after 1s" in said.stderr
    assert json.loads(ork_cli("output", "@last", "told", cwd=tmp_path).stdout) == "config task"


HUNGRY = """
name: w
tasks:
  small: {file: tasks.py, function: small, worker: tiny}
  function: {file: tasks.py, function: hungry, worker: tiny}
  command: {command: [python3, -c, "x = b'x' * (600 << 20)"], worker: tiny}
"""
TASKS = """
def small():
    return len(b"x" * (20 << 20))

def hungry():
    return len(b"x" * (600 << 20))
"""


@pytest.mark.slow
@pytest.mark.parametrize("isolation", ["fork", "interpreter", "shared"])
def test_a_local_task_that_uses_more_memory_than_its_config_allows_fails_with_its_own_sentence(
    ork_cli: OrkCli, tmp_path: Path, isolation: str
) -> None:
    if enforcement()["memory"] != "cgroup":
        pytest.skip("no memory control group can be made here")
    (tmp_path / "workers.yaml").write_text("tiny: {memory: 200Mi}\n")
    (tmp_path / "workflow.yaml").write_text(HUNGRY)
    (tmp_path / "tasks.py").write_text(TASKS)
    said = ork_cli("run", cwd=tmp_path, env={"ORK_ISOLATION": isolation})
    sentence = "out of memory: the task used more than the memory limit of 200Mi in worker config `tiny`"
    assert said.stderr.count(sentence) + said.stdout.count(sentence) == 2, said.stdout + said.stderr
    assert json.loads(ork_cli("output", "@last", "small", cwd=tmp_path).stdout) == 20 << 20
    run = json.loads(ork_cli("show", "@last", "--json", cwd=tmp_path).stdout)["id"]
    assert not [name for _, folders, _ in os.walk("/sys/fs/cgroup") for name in folders if f"ork-{run}" in name]


CHILDREN = """
name: w
tasks:
  goes_on: {command: [sh, -c, "python3 eat.py; printf 'went on'"], worker: tiny}
  function: {file: tasks.py, function: goes_on, worker: tiny}
  gives_up: {command: [sh, -c, "python3 eat.py || exit 3"], worker: tiny}
  spares: {command: [sh, -c, "sh -c 'kill -9 $$'; echo fine"], worker: tiny}
"""
CHILDREN_TASKS = """
import subprocess, sys

def goes_on():
    return subprocess.run([sys.executable, "eat.py"]).returncode
"""


@pytest.mark.slow
@pytest.mark.parametrize("isolation", ["fork", "interpreter", "shared"])
def test_a_process_below_the_task_that_is_killed_for_its_memory_is_mentioned(
    ork_cli: OrkCli, tmp_path: Path, isolation: str
) -> None:
    if enforcement()["memory"] != "cgroup":
        pytest.skip("no memory control group can be made here")
    (tmp_path / "workers.yaml").write_text("tiny: {memory: 200Mi}\n")
    (tmp_path / "workflow.yaml").write_text(CHILDREN)
    (tmp_path / "tasks.py").write_text(CHILDREN_TASKS)
    (tmp_path / "eat.py").write_text("print(len(b'x' * int('600') * (1 << 20)))")
    run = json.loads(ork_cli("run", "--json", cwd=tmp_path, env={"ORK_ISOLATION": isolation}).stdout)
    tasks = {task["name"]: task for task in run["tasks"]}
    hint = (
        "a process of the task was killed: out of memory, more than the memory limit of 200Mi in worker config `tiny`"
    )
    assert {name: task["status"] for name, task in tasks.items()} == {
        "goes_on": "success", "function": "success", "gives_up": "failed", "spares": "success",
    }  # fmt: skip
    assert tasks["function"]["output"] == -9
    logs = {name: ork_cli("logs", run["id"], name, cwd=tmp_path).stdout for name in tasks}
    assert {name for name, log in logs.items() if f"[ork: {hint}]" in log.splitlines()} == {"goes_on", "function"}
    assert "exit code 3" in tasks["gives_up"]["error"]
    assert f"({hint})" in tasks["gives_up"]["error"]


def test_a_task_may_ask_for_less_without_a_config(ork_cli: OrkCli, tmp_path: Path) -> None:
    (tmp_path / "workflow.yaml").write_text(
        "name: w\ntasks: {a: {file: tasks.py, function: cpus, resources: {cpu: 1, memory: 1Gi}}}\n"
    )
    (tmp_path / "tasks.py").write_text("def cpus():\n    return 1\n")
    said = ork_cli("run", cwd=tmp_path)
    assert said.returncode == 0, said.stderr

"""What people do with fan-outs, questions, reruns and the debugger, through the real command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

OrkCli = Callable[..., "subprocess.CompletedProcess[str]"]

FLOW = """\
name: flow
params: {limit: {type: int, default: 5}}
tasks:
  each:
    file: tasks.py
    function: each
    foreach: [0, 1, 2, 3, 4, 5]
    env: {NOTE: hello}
    inputs: {limit: {ref: params.limit}}
  grid: {file: tasks.py, function: grid, foreach: [a, b], parallel: 2}
  none: {command: 'true', foreach: []}
  total: {file: tasks.py, function: total, depends_on: [each, grid, none]}
  shell: {command: [sh, -c, 'cat; pwd; echo "$NOTE" >&2; exit 3'], env: {NOTE: from-env}, inputs: {x: 1}}
"""
TASKS = """\
import os
from pathlib import Path


def each(item, limit):
    print("item", item)
    with Path("ledger").open("a") as ledger:
        ledger.write(f"{item}\\n")
    note = os.environ["NOTE"]
    if item >= limit:
        raise ValueError(f"{item} is too much, {note}")
    return item * 10


def grid(item, ctx):
    return f"{item}{ctx.parallel_index}"


def total(each, grid, none):
    return [each, grid, none]
"""


@pytest.fixture
def ork(tmp_path: Path, ork_cli: OrkCli) -> OrkCli:
    (tmp_path / "workflow.yaml").write_text(FLOW)
    (tmp_path / "tasks.py").write_text(TASKS)

    def call(*args: str, **options: Any) -> subprocess.CompletedProcess[str]:
        return ork_cli(*args, cwd=tmp_path, **options)

    return call


def in_debugger(folder: Path, env: dict[str, str], typed: str, *args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ork", "debug", *args]
    return subprocess.run(command, cwd=folder, env=env, input=typed, capture_output=True, text=True, timeout=60)


def state_of(ork: OrkCli) -> Any:
    return json.loads(ork("show", "@last", "--json").stdout)


def test_the_outputs_of_a_fan_out_come_in_order_nested_and_one_by_one(ork: OrkCli) -> None:
    ork("run", "-p", "limit=9")
    assert json.loads(ork("output", "@last", "each").stdout) == [0, 10, 20, 30, 40, 50]
    assert json.loads(ork("output", "@last", "each[3]").stdout) == 30
    assert json.loads(ork("output", "@last/grid").stdout) == [["a0", "a1"], ["b0", "b1"]]
    assert json.loads(ork("output", "@last", "none").stdout) == []
    assert json.loads(ork("output", "@last", "total").stdout)[1:] == [[["a0", "a1"], ["b0", "b1"]], []]
    assert ork("output", "@last", "each[6]").returncode == 3


def test_the_logs_of_a_fan_out_stand_behind_their_instances_names(ork: OrkCli) -> None:
    ork("run", "-p", "limit=9")
    assert ork("logs", "@last", "each").stdout.splitlines() == [f"each[{index}] | item {index}" for index in range(6)]
    assert ork("logs", "@last/each[2]").stdout == "item 2\n"


def test_a_failed_instance_is_named_and_retried_alone(ork: OrkCli, tmp_path: Path) -> None:
    done = ork("run")
    assert done.returncode == 1
    assert "✗ each[5]" in done.stderr
    assert "debug          ork debug" in done.stderr
    assert "5 of 6" not in ork("show", "@last").stdout
    assert "6 of 6, 1 failed" in ork("show", "@last").stdout
    assert "ValueError: 5 is too much" in ork("why", "@last", "each").stdout
    text = (tmp_path / "tasks.py").read_text()
    (tmp_path / "tasks.py").write_text(text.replace("item >= limit", "item > limit"))
    ork("retry", "@last", "--task", "each[5]")
    each = [task for task in state_of(ork)["tasks"] if task["name"] == "each"]
    assert [(task["attempt"], task["status"]) for task in each] == [(1, "success")] * 5 + [(2, "success")]
    assert sorted((tmp_path / "ledger").read_text().split()) == ["0", "1", "2", "3", "4", "5", "5"]


def test_a_rerun_is_a_new_run_with_changed_params_linked_to_the_old_one(ork: OrkCli) -> None:
    ork("run")
    first = state_of(ork)
    done = ork("rerun", "@last", "-p", "limit=7", "--json")
    run = json.loads(done.stdout)
    assert run["id"] != first["id"]
    assert (run["params"], run["parent"], run["version"]) == ({"limit": 7}, first["id"], first["version"])
    assert first["id"] in ork("show", "@last").stdout
    assert json.loads(ork("show", first["id"], "--json").stdout) == first
    refused = ork("rerun", first["id"], "-p", "limit=x", "-p", "limti=7")
    assert refused.returncode == 2
    assert "`limit`" in refused.stderr
    assert "`limti`" in refused.stderr
    assert ork("rerun", "zzzz").returncode == 3


def test_debug_stops_where_the_function_raised_and_changes_no_state(
    ork: OrkCli, tmp_path: Path, plain_environment: dict[str, str]
) -> None:
    ork("run")
    before = state_of(ork), sorted(map(str, (tmp_path / ".ork" / "objects").rglob("*")))
    looked = in_debugger(tmp_path, plain_environment, "p (item, limit, note)\nq\n", "@last", "each[5]")
    assert looked.returncode == 1
    assert "(5, 5, 'hello')" in looked.stdout
    assert "tasks.py(11)each()" in looked.stdout
    assert "ork/worker" not in looked.stderr
    assert (state_of(ork), sorted(map(str, (tmp_path / ".ork" / "objects").rglob("*")))) == before


def test_debug_stops_in_the_users_own_frame_where_a_library_raised(
    tmp_path: Path, ork_cli: OrkCli, plain_environment: dict[str, str]
) -> None:
    (tmp_path / "read.py").write_text(
        "import json\n\n\ndef main():\n    text = 'not JSON'\n    return json.loads(text)\n"
    )
    (tmp_path / "workflow.yaml").write_text("name: w\ntasks: {read: {file: read.py}}\n")
    ork_cli("run", cwd=tmp_path)
    looked = in_debugger(tmp_path, plain_environment, "p text\nq\n", "@last", "read")
    assert "'not JSON'" in looked.stdout
    assert "read.py(6)main()" in looked.stdout


def test_debug_without_a_task_takes_the_first_that_failed(
    ork: OrkCli, tmp_path: Path, plain_environment: dict[str, str]
) -> None:
    ork("run")
    assert "each()" in in_debugger(tmp_path, plain_environment, "q\n", "@last").stdout
    ork("run", "-p", "limit=9")
    assert "name a task" in in_debugger(tmp_path, plain_environment, "", "@last", "grid").stderr


def test_debug_can_begin_at_the_first_line(ork: OrkCli, tmp_path: Path, plain_environment: dict[str, str]) -> None:
    ork("run")
    looked = in_debugger(tmp_path, plain_environment, "p item\nc\n", "@last", "each[2]", "--trace")
    assert looked.returncode == 0
    assert '-> print("item", item)' in looked.stdout
    assert looked.stdout.rstrip().endswith("20")


def test_debug_runs_a_command_with_its_input_environment_and_folder(
    ork: OrkCli, tmp_path: Path, plain_environment: dict[str, str]
) -> None:
    ork("run")
    looked = in_debugger(tmp_path, plain_environment, "", "@last", "shell")
    assert looked.returncode == 1
    assert looked.stdout == f'{{"x":1}}{os.path.realpath(tmp_path)}\n'
    assert "from-env" in looked.stderr
    assert "exit code 3" in looked.stderr


def test_debug_refuses_what_never_ran(ork: OrkCli) -> None:
    ork("run")
    assert ork("debug", "@last", "total").returncode == 3
    assert ork("debug", "@last", "each[1]", "--attempt", "4").returncode == 3
    assert ork("debug", "@last", "nobody").returncode == 3


def test_a_run_nobody_works_on_goes_on_when_its_question_is_answered(tmp_path: Path, ork_cli: OrkCli) -> None:
    text = "name: ask\ntasks:\n  ok: {approval: Go on?}\n  after: {command: echo done, depends_on: [ok]}\n"
    (tmp_path / "ask.yaml").write_text(text)
    ork_cli("deploy", "ask.yaml", cwd=tmp_path)
    for verb, status in (("approve", "success"), ("reject", "failed")):
        run = ork_cli("trigger", "ask", cwd=tmp_path).stdout.strip()
        ork_cli("tick", cwd=tmp_path)
        assert "Go on?" in ork_cli("why", run, cwd=tmp_path).stdout
        decided = ork_cli(verb, run, "ok", "--comment", "because", cwd=tmp_path)
        assert decided.returncode == 0
        shown = json.loads(ork_cli("show", run, "--json", cwd=tmp_path).stdout)
        assert shown["status"] == status
    assert "rejected by" in shown["tasks"][0]["error"]
    assert shown["tasks"][0]["error"].endswith("because")

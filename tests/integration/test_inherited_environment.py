"""Which variables of a service reach its tasks, in every isolation, for functions and commands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import OrkCli

FLOW = """
name: w
defaults: {isolation: %s}
tasks:
  call: {file: tasks.py, function: call}
  run: {command: [python3, -c, "import json, os; print(json.dumps(sorted(os.environ)))"]}
"""
TASKS = """
import os

def call():
    return sorted(os.environ)
"""


@pytest.mark.parametrize("isolation", ["fork", "interpreter", "shared"])
def test_tasks_inherit_what_is_on_the_list_and_nothing_else(ork_cli: OrkCli, tmp_path: Path, isolation: str) -> None:
    (tmp_path / "ork.yaml").write_text("pass_env: [WANTED, TEAM_*]\n")
    (tmp_path / "workflow.yaml").write_text(FLOW % isolation)
    (tmp_path / "tasks.py").write_text(TASKS)
    service = {"PGPASSWORD": "hunter2", "WANTED": "1", "TEAM_A": "2", "LC_TIME": "C", "ORK_TOKEN_FILE": "/nowhere"}
    done = ork_cli("run", cwd=tmp_path, env={**service, "ORK_TOKEN_FILE": ""})
    assert done.returncode == 0, done.stderr
    for task in ("call", "run"):
        names = set(json.loads(ork_cli("output", "@last", task, cwd=tmp_path).stdout))
        assert {"PATH", "HOME", "WANTED", "TEAM_A", "LC_TIME", "ORK_RUN_ID"} <= names
        assert not {"PGPASSWORD", "ORK_TOKEN_FILE", "ORK_TOKEN", "ORK_STORE"} & names


def test_a_missing_variable_is_explained(ork_cli: OrkCli, tmp_path: Path) -> None:
    (tmp_path / "workflow.yaml").write_text("name: w\ntasks: {a: {file: tasks.py, function: call}}\n")
    (tmp_path / "tasks.py").write_text("import os\n\ndef call():\n    return os.environ['PGPASSWORD']\n")
    done = ork_cli("run", cwd=tmp_path, env={"PGPASSWORD": "hunter2"})
    assert done.returncode == 1
    assert "KeyError: 'PGPASSWORD' (tasks do not inherit this variable" in done.stderr
    assert "pass_env: [PGPASSWORD]" in done.stderr

"""Every template of `ork init` is a project that runs as it was written, with tests that pass."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ork.cli.commands.init import NAMES
from ork.cli.init_templates import TEMPLATES, new_project

OrkCli = Callable[..., "subprocess.CompletedProcess[str]"]
SCHEMA_LINE = "# yaml-language-server: $schema=.ork/workflow.schema.json\n"


def create(ork_cli: OrkCli, folder: Path, template: str) -> Path:
    made = ork_cli("init", "--template", template, "new", cwd=folder)
    assert made.returncode == 0, made.stderr
    assert made.stdout.endswith("   (in new/)\n")
    return folder / "new"


def run_all(ork_cli: OrkCli, folder: Path) -> dict[str, Any]:
    """The outputs of the run, by task, after the project's own tests."""
    done = ork_cli("run", "--json", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    tests = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly"], cwd=folder, capture_output=True, text=True
    )
    assert tests.returncode == 0, tests.stdout
    return {task["name"]: task["output"] for task in json.loads(done.stdout)["tasks"]}


def test_every_template_has_its_files_and_names_the_next_commands() -> None:
    assert tuple(TEMPLATES) == NAMES
    for template in NAMES:
        project = new_project(template, "My.Flow")
        assert project.next
        assert project.files["workflow.yaml"].startswith(SCHEMA_LINE + "name: My.Flow\n")
        assert any(name.startswith("test_") for name in project.files)
        named = (name for name in project.about if not name.endswith("/"))
        assert set(named) <= set(project.files)
        assert not any("{" in text for text in project.about.values())
    assert new_project("docker", "My.Flow").next[0].startswith("docker build -t my-flow .")


def test_etl_makes_a_table_of_a_table(tmp_path: Path, ork_cli: OrkCli) -> None:
    folder = create(ork_cli, tmp_path, "etl")
    assert run_all(ork_cli, folder)["load"] == {"table": "out/warehouse.db:totals", "rows": 4}
    (folder / "orders.csv").write_text("order,country,amount\n1,CZ,\n")
    spoiled = ork_cli("run", cwd=folder)
    assert (spoiled.returncode, "1 of 1 rows are unusable" in spoiled.stderr) == (1, True)


def test_ml_publishes_only_a_good_model(tmp_path: Path, ork_cli: OrkCli) -> None:
    folder = create(ork_cli, tmp_path, "ml")
    assert run_all(ork_cli, folder)["publish"]["path"] == "out/model.json"
    done = ork_cli("run", "--json", "-p", "penalties=[2.0]", cwd=folder)
    states = {task["name"]: task["status"] for task in json.loads(done.stdout)["tasks"]}
    assert (done.returncode, states["choose"], states["publish"]) == (0, "success", "skipped")


def test_a_template_is_written_as_a_whole_or_not_at_all(tmp_path: Path, ork_cli: OrkCli) -> None:
    (tmp_path / "new").mkdir()
    (tmp_path / "new/warehouse").write_text("mine")  # where a folder has to be
    done = ork_cli("init", "--template", "dbt", "new", cwd=tmp_path)
    assert (done.returncode, "nothing was left there" in done.stderr) == (2, True)
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["warehouse"]
    done = ork_cli("init", "--docker", "--template", "ml", "other", cwd=tmp_path)
    assert (done.returncode, "exclude each other" in done.stderr) == (2, True)


@pytest.mark.parametrize("words", [("--docker",), ("--template", "docker")])
def test_both_words_for_docker_mean_the_same(tmp_path: Path, ork_cli: OrkCli, words: tuple[str, ...]) -> None:
    made = json.loads(ork_cli("init", *words, "new", "--json", cwd=tmp_path).stdout)
    assert made["template"] == "docker"
    assert made["files"] == ["workflow.yaml", "tasks.py", "test_tasks.py", "Dockerfile", "locations.yaml"]

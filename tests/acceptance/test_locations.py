"""Folders as code locations, as a person uses them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.waiting import wait_until
from tests.serving import Served, serving

OrkCli = Callable[..., "subprocess.CompletedProcess[str]"]
FLOW = "name: {name}\ntasks:\n  a: {{command: 'echo 7'}}\n"


class Project:
    """A folder `flows` that is a location, and the command line beside it."""

    def __init__(self, folder: Path, cli: OrkCli) -> None:
        self.folder = folder
        self._cli = cli
        (folder / "flows").mkdir()
        (folder / "locations.yaml").write_text("- {name: flows, path: flows, refresh: '0 0 1 1 *'}\n")

    def write(self, name: str, text: str = FLOW) -> None:
        (self.folder / "flows" / f"{name}.yaml").write_text(text.format(name=name))

    def remove(self, name: str) -> None:
        (self.folder / "flows" / f"{name}.yaml").unlink()

    def ork(self, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
        return self._cli(*args, cwd=self.folder, env=env)

    def refresh(self, **env: str) -> dict[str, Any]:
        done = self.ork("locations", "refresh", "flows", "--json", **env)
        assert done.returncode in (0, 1), done.stderr
        (location,) = json.loads(done.stdout)["locations"]
        return dict(location)

    def workflows(self) -> dict[str, tuple[bool, str]]:
        rows = json.loads(self.ork("workflows", "--json").stdout)["workflows"]
        return {row["name"]: (row["enabled"], row["origin"]) for row in rows}


@pytest.fixture
def project(tmp_path: Path, ork_cli: OrkCli) -> Project:
    return Project(tmp_path, ork_cli)


@pytest.fixture
def served(project: Project, plain_environment: dict[str, str]) -> Iterator[Served]:
    with serving(project.folder, plain_environment) as served:
        yield served


def test_workflows_of_a_folder_are_found_run_and_cannot_be_changed_from_elsewhere(project: Project) -> None:
    project.write("a")
    found = project.refresh()
    assert (found["status"], found["workflows"], found["error"]) == ("ok", ["a"], None)
    assert project.workflows() == {"a": (True, f"location:flows@{found['digest']}")}
    assert project.ork("run", "a").returncode == 0
    for words in (("deploy", "flows/a.yaml"), ("run", "flows/a.yaml"), ("workflow", "delete", "a")):
        refused = project.ork(*words)
        assert (refused.returncode, "belongs to location flows" in refused.stderr) == (4, True), words


def test_a_mistake_is_shown_with_its_place_and_what_was_good_goes_on(project: Project) -> None:
    project.write("a")
    good = project.refresh()
    project.write("a", "name: {name}\ntaks: 1\ntasks:\n  a: {{command: 'echo 8'}}\n")
    done = project.ork("locations", "refresh", "flows")
    assert done.returncode == 1
    assert "ORK708 a.yaml:2:1: ORK101 `taks` is not a key of a workflow" in done.stdout
    assert project.ork("run", "a").returncode == 0
    (shown,) = json.loads(project.ork("locations", "--json").stdout)["locations"]
    assert (shown["status"], shown["digest"], shown["error"]["code"]) == ("failed", good["digest"], "ORK708")


def test_a_file_that_goes_disables_its_workflow_until_it_comes_back(project: Project) -> None:
    project.write("a")
    project.write("b")
    project.refresh()
    project.remove("b")
    assert project.refresh()["vanished"] == ["b"]
    assert project.workflows()["b"][0] is False
    project.write("b")
    assert project.refresh()["vanished"] == []
    assert project.workflows()["b"][0] is True


def test_a_location_that_is_taken_out_leaves_its_workflows_disabled_and_free(project: Project) -> None:
    project.write("a")
    project.refresh()
    (project.folder / "locations.yaml").write_text("[]\n")
    assert project.ork("tick").returncode == 0
    assert project.workflows()["a"][0] is False
    assert project.ork("deploy", "flows/a.yaml").returncode == 0


def test_a_tick_refreshes_what_is_due_and_says_when_the_next_is(project: Project) -> None:
    project.write("a", "name: {name}\nschedule: '30 1 1 1 *'\ntasks:\n  a: {{command: 'echo 7'}}\n")
    ticked = json.loads(project.ork("tick", "--json").stdout)
    assert list(project.workflows()) == ["a"]
    assert ticked["next_wake"].endswith("-01-01T00:00:00.000000Z")


def test_a_scheduler_looks_when_it_starts_and_when_it_is_asked(project: Project, served: Served) -> None:
    wait_until(lambda: served.ask("GET", "/locations")[1]["locations"][0]["status"] == "ok")
    project.write("a")
    assert project.refresh()["workflows"] == ["a"]
    project.write("b")
    assert project.refresh(**served.remote)["workflows"] == ["a", "b"]
    assert served.ask("POST", "/locations/nothing/refresh")[0] == 404


def test_the_api_refuses_what_belongs_to_a_location_and_origins_that_pretend(project: Project, served: Served) -> None:
    project.write("a")
    found = project.refresh()
    flow = {"name": "a", "tasks": {"a": {"command": "echo 8"}}}
    status, problem = served.ask("POST", "/workflows", flow)
    assert (status, problem["code"]) == (409, "ORK709")
    status, _ = served.ask("POST", f"/workflows?source=location:flows@{found['digest']}", flow)
    assert status == 400
    assert served.ask("DELETE", "/workflows/a")[0] == 409


def test_mistakes_in_the_file_itself_are_shown_with_their_place(project: Project) -> None:
    (project.folder / "locations.yaml").write_text("- {name: flows, paht: flows}\n")
    ticked = project.ork("tick")
    assert ticked.returncode == 0, "what a tick does besides looking into locations goes on"
    assert "`paht` is not a key of a location (locations.yaml:1:17)" in ticked.stderr
    done = project.ork("locations")
    assert done.returncode == 2
    assert "error[ORK101]: `paht` is not a key of a location" in done.stderr
    assert "locations.yaml:1:17" in done.stderr
    problems = json.loads(project.ork("locations", "--json").stdout)["problems"]
    assert [problem["code"] for problem in problems] == ["ORK101"]  # `path` is not reported as missing as well


def test_validating_tells_mistakes_in_the_projects_own_files_too(project: Project) -> None:
    fine = project.ork("validate", "locations.yaml")
    assert (fine.returncode, fine.stdout) == (0, "✓ locations.yaml\n")
    (project.folder / "locations.yaml").write_text("- {name: flows, image: 'https://x'}\n")
    wrong = project.ork("validate", "locations.yaml", "--format", "concise")
    assert (wrong.returncode, wrong.stdout.split(" ")[:2]) == (2, ["locations.yaml:1:24:", "ORK703"])


def test_tasks_of_a_folder_import_from_it_if_it_is_a_project(project: Project, tmp_path: Path) -> None:
    other = tmp_path / "other"
    for name, text in {
        "ork.yaml": "pythonpath: [src]\n",
        "common/util.py": "def x(): return 40\n",
        "src/lib.py": "y = 2\n",
        "flows/etl.py": "from common.util import x\nfrom lib import y\n\n\ndef main():\n    return x() + y\n",
        "flows/etl.yaml": "name: etl\ntasks:\n  a: {file: etl.py}\n",
    }.items():
        (other / name).parent.mkdir(parents=True, exist_ok=True)
        (other / name).write_text(text)
    (tmp_path / "locations.yaml").write_text("- {name: flows, path: other}\n")
    assert project.refresh()["workflows"] == ["etl"]
    assert project.ork("run", "etl").returncode == 0
    assert json.loads(project.ork("output", "@last", "a").stdout) == 42

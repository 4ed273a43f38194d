"""A project is the folder of its `ork.yaml`, wherever a command is started: settings, secrets, history, imports."""

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

USES_COMMON = "from common.util import x\n\n\ndef main():\n    return x()\n"
PYTHON_FLOW = """\
from common.util import x

from ork import Workflow

flow = Workflow("written")


@flow.task
def main() -> int:
    return x()
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """`ork.yaml`, `common/`, `flows/`: how people keep several workflows in one repository."""
    root = tmp_path / "repository"
    for folder in ("common", "flows", "tasks"):
        (root / folder).mkdir(parents=True)
    (root / "ork.yaml").write_text("pools: {narrow: 1}\n")
    (root / "common/__init__.py").touch()
    (root / "common/util.py").write_text("def x():\n    return 42\n")
    (root / "flows/etl.yaml").write_text("name: etl\ntasks:\n  main: {file: etl.py}\n")
    (root / "flows/etl.py").write_text(USES_COMMON)
    (root / "flows/written.py").write_text(PYTHON_FLOW)
    return root


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    return folder


def run(ork_cli: OrkCli, file: Path, cwd: Path, **env: str) -> dict[str, Any]:
    done = ork_cli("run", str(file), "--json", cwd=cwd, env=env)
    assert done.stdout, done.stderr
    shape: dict[str, Any] = json.loads(done.stdout)
    assert shape.get("status") == "success", done.stdout + done.stderr
    return shape


def output(shape: dict[str, Any], task: str = "main") -> Any:
    return next(each["output"] for each in shape["tasks"] if each["name"] == task)


def test_a_run_started_elsewhere_uses_the_projects_settings_secrets_and_history(
    project: Path, elsewhere: Path, ork_cli: OrkCli
) -> None:
    (project / ".env").write_text("GREETING=from the project\n")
    (project / "flows/secret.yaml").write_text(
        "name: secret\ntasks:\n"
        "  main: {command: [sh, -c, 'printf %s \"$GREETING\" > seen'], env: {GREETING: {secret: GREETING}}, pool: narrow}\n"
    )
    first = run(ork_cli, project / "flows/secret.yaml", elsewhere)
    assert (project / "flows/seen").read_text() == "from the project"
    assert not (elsewhere / ".ork").exists()
    runs = json.loads(ork_cli("runs", "--json", cwd=project / "flows").stdout)["runs"]
    assert [each["id"] for each in runs] == [first["id"]]


def test_a_run_started_elsewhere_says_where_its_history_is(project: Path, elsewhere: Path, ork_cli: OrkCli) -> None:
    assert f"the project is {project}" in ork_cli("run", str(project / "flows/etl.yaml"), cwd=elsewhere).stderr
    assert "the project is" not in ork_cli("run", "flows/etl.yaml", cwd=project).stderr
    assert f"the project is {project}" in ork_cli("deploy", str(project / "flows/etl.yaml"), cwd=elsewhere).stderr


def test_a_name_that_only_the_projects_settings_know_is_known_from_anywhere(
    project: Path, elsewhere: Path, ork_cli: OrkCli
) -> None:
    (project / "flows/etl.yaml").write_text("name: etl\ntasks:\n  main: {file: etl.py, pool: narow}\n")
    for command in ("validate", "run", "plan", "deploy"):
        done = ork_cli(command, str(project / "flows/etl.yaml"), cwd=elsewhere)
        assert (done.returncode, "ork.yaml has no pool `narow`" in done.stderr) == (2, True), (command, done.stderr)


@pytest.mark.parametrize("isolation", ["fork", "interpreter", "shared"])
@pytest.mark.parametrize("file", ["etl.yaml", "written.py"])
def test_tasks_import_from_the_projects_folder(project: Path, ork_cli: OrkCli, isolation: str, file: str) -> None:
    assert output(run(ork_cli, Path("flows") / file, project, ORK_ISOLATION=isolation)) == 42


@pytest.mark.parametrize("isolation", ["fork", "interpreter", "shared"])
def test_pythonpath_adds_folders_and_the_workflows_own_folder_comes_first(
    project: Path, ork_cli: OrkCli, isolation: str
) -> None:
    (project / "ork.yaml").write_text("pythonpath: [src]\n")
    (project / "src").mkdir()
    for folder in (project / "src", project, project / "flows"):
        (folder / "where.py").write_text(f"PLACE = {folder.name!r}\n")
    (project / "src/only_here.py").write_text("PLACE = 'src'\n")
    (project / "flows/etl.py").write_text(
        "import only_here, where\n\n\ndef main():\n    return [where.PLACE, only_here.PLACE]\n"
    )
    assert output(run(ork_cli, Path("flows/etl.yaml"), project, ORK_ISOLATION=isolation)) == ["flows", "src"]
    (project / "flows/where.py").unlink()
    assert output(run(ork_cli, Path("flows/etl.yaml"), project, ORK_ISOLATION=isolation)) == ["repository", "src"]


def test_a_file_may_be_named_from_the_projects_folder(project: Path, elsewhere: Path, ork_cli: OrkCli) -> None:
    (project / "tasks/a.py").write_text(USES_COMMON)
    (project / "tasks/script.py").write_text("from common.util import x\nprint(x())\n")
    (project / "flows/etl.yaml").write_text(
        "name: etl\ntasks:\n  main: {file: /tasks/a.py}\n  script: {file: /tasks/script.py, executor: process}\n"
    )
    shape = run(ork_cli, project / "flows/etl.yaml", elsewhere)
    assert (output(shape), output(shape, "script")) == (42, 42)


def test_a_file_that_is_not_in_the_project_is_a_mistake_that_says_where_it_was_looked_for(
    project: Path, ork_cli: OrkCli
) -> None:
    (project / "flows/etl.yaml").write_text("name: etl\ntasks:\n  main: {file: /task/a.py}\n")
    done = ork_cli("validate", "flows/etl.yaml", cwd=project)
    assert done.returncode == 2
    assert "ORK501" in done.stderr
    assert f"begins at the project's folder, {project}" in done.stderr


def test_a_failure_in_shared_code_shows_its_line(project: Path, ork_cli: OrkCli) -> None:
    (project / "common/util.py").write_text("def x():\n    return 1 / 0\n")
    done = ork_cli("run", "flows/etl.yaml", cwd=project)
    assert done.returncode == 1
    assert "../common/util.py:2" in done.stderr
    assert "etl.py:5" in done.stderr


def test_types_are_checked_across_the_projects_folders(project: Path, ork_cli: OrkCli) -> None:
    (project / "common/util.py").write_text("def x() -> int:\n    return 42\n\n\ndef y(x: str) -> str:\n    return x\n")
    (project / "flows/etl.yaml").write_text(
        "name: etl\ntasks:\n  x: {module: common.util, function: x}\n"
        "  y: {module: common.util, function: y, depends_on: [x]}\n"
    )
    done = ork_cli("validate", "flows/etl.yaml", cwd=project)
    assert (done.returncode, "ORK" in done.stderr, "str" in done.stderr) == (2, True, True), done.stderr


def test_the_virtual_environment_of_the_project_runs_its_tasks(project: Path, ork_cli: OrkCli) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", project / ".venv"], check=True)
    (project / "flows/etl.py").write_text("import sys\n\n\ndef main():\n    return sys.prefix\n")
    assert output(run(ork_cli, Path("flows/etl.yaml"), project)) == str(project / ".venv")


def test_a_worker_that_stays_follows_a_changed_pythonpath(
    project: Path, ork_cli: OrkCli, plain_environment: dict[str, str]
) -> None:
    for name in ("one", "two"):
        (project / name).mkdir()
        (project / name / "place.py").write_text(f"NAME = {name!r}\n")
    (project / "flows/etl.py").write_text("import place\n\n\ndef main():\n    return place.NAME\n")
    scheduler = subprocess.Popen(
        [sys.executable, "-m", "ork", "scheduler"], cwd=project, env=plain_environment, stderr=subprocess.DEVNULL
    )
    try:
        for name in ("one", "two", "one"):
            (project / "ork.yaml").write_text(f"pythonpath: {name}\n")
            assert ork_cli("deploy", "flows/etl.yaml", cwd=project).returncode == 0
            for _ in range(2):
                done = ork_cli("trigger", "etl", "--wait", cwd=project)
                assert done.returncode == 0, done.stderr
                assert json.loads(ork_cli("output", "@last", "main", cwd=project).stdout) == name
    finally:
        scheduler.terminate()
        scheduler.wait(30)


def test_files_of_two_projects_are_not_deployed_together(project: Path, tmp_path: Path, ork_cli: OrkCli) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "ork.yaml").touch()
    (other / "flow.yaml").write_text("name: other\ntasks:\n  main: {command: 'true'}\n")
    done = ork_cli("deploy", str(project / "flows/etl.yaml"), str(other / "flow.yaml"), cwd=tmp_path)
    assert done.returncode == 2
    assert f"belongs to the project {project}" in done.stderr
    assert "one project at a time" in done.stderr
    assert ork_cli("validate", str(project / "flows/etl.yaml"), str(other / "flow.yaml"), cwd=tmp_path).returncode == 0


def test_without_a_project_the_current_folder_becomes_it_if_the_file_is_below(
    project: Path, elsewhere: Path, ork_cli: OrkCli
) -> None:
    (project / "ork.yaml").unlink()
    run(ork_cli, Path("flows/etl.yaml"), project)
    assert (project / ".ork").is_dir()
    assert not (project / "flows/.ork").exists()
    assert output(run(ork_cli, project / "flows/written.py", elsewhere)) == 42
    assert len(json.loads(ork_cli("runs", "--json", cwd=project).stdout)["runs"]) == 2


def test_dev_and_run_make_the_same_version(
    project: Path, ork_cli: OrkCli, plain_environment: dict[str, str], tmp_path: Path
) -> None:
    made = run(ork_cli, project / "flows/etl.yaml", tmp_path)["version"]
    dev = subprocess.Popen(
        [sys.executable, "-m", "ork", "dev", "flows", "--no-api"],
        cwd=project,
        env=plain_environment,
        stderr=subprocess.DEVNULL,
    )

    def deployed() -> bool:
        entries = json.loads(ork_cli("workflows", "--json", cwd=project).stdout)["workflows"]
        return {entry["name"] for entry in entries} == {"etl", "written"}

    try:
        wait_until(deployed)
    finally:
        dev.terminate()
        dev.wait(30)
    entries = json.loads(ork_cli("workflows", "--json", cwd=project).stdout)["workflows"]
    assert next(entry["version"] for entry in entries if entry["name"] == "etl") == made

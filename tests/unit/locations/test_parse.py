"""`ork-parse`: what is in a folder, as one JSON document."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ork.compile.content import from_document
from ork.locations.find import definition_files
from ork.locations.parse import parse_folder
from ork.objects.json_text import strict_json

PYTHON_WORKFLOW = """
from ork import Workflow
print("hello from user code")
etl = Workflow("from_python")

@etl.task
def load() -> int:
    return 1
"""
YAML_WORKFLOW = "name: from_yaml\ntasks:\n  a: {command: 'true'}\n"


def ork_parse(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[bytes]:
    program = os.path.join(os.path.dirname(sys.executable), "ork-parse")
    return subprocess.run([program, *arguments], cwd=cwd, capture_output=True, check=False)


def parsed(folder: Path) -> dict[str, Any]:
    return parse_folder(str(folder))[0]


def names(document: dict[str, Any]) -> list[str]:
    return [workflow["name"] for workflow in document["workflows"]]


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.mark.slow
def test_yaml_and_python_workflows_are_found_and_told_as_one_strict_document(tmp_path: Path) -> None:
    write(tmp_path, {"flows/one.yaml": YAML_WORKFLOW, "code/two.py": PYTHON_WORKFLOW})
    done = ork_parse(cwd=tmp_path)
    document = strict_json(done.stdout, max_size=1 << 20)
    assert done.returncode == 0
    assert done.stdout.count(b"\n") == 1
    assert {w["name"]: (w["file"], w["root"]) for w in document["workflows"]} == {
        "from_python": ("code/two.py", "code"),
        "from_yaml": ("flows/one.yaml", "flows"),
    }
    assert [from_document(workflow["definition"]).name for workflow in document["workflows"]] == names(document)


@pytest.mark.slow
def test_a_mistake_is_in_the_document_with_its_place_and_on_stderr_for_people(tmp_path: Path) -> None:
    write(
        tmp_path, {"good.yaml": YAML_WORKFLOW, "sub/bad.yaml": "name: bad\ntasks:\n  a: {command: 'true', retrys: 1}\n"}
    )
    done = ork_parse(str(tmp_path), cwd=Path("/"))
    (problem,) = json.loads(done.stdout)["problems"]
    assert done.returncode == 1
    assert (problem["file"], problem["line"], problem["column"], problem["code"]) == ("sub/bad.yaml", 3, 24, "ORK101")
    assert problem["source_line"] == "  a: {command: 'true', retrys: 1}"
    assert b"sub/bad.yaml:3:24: ORK101" in done.stderr
    assert names(json.loads(done.stdout)) == ["from_yaml"]


def test_the_place_of_a_mistake_in_a_tasks_file_is_seen_from_the_folder(tmp_path: Path) -> None:
    write(tmp_path, {"sub/flow.yaml": "name: f\ntasks:\n  a: {file: steps.py}\n", "sub/steps.py": "def main(:\n"})
    (problem,) = parsed(tmp_path)["problems"]
    assert (problem["code"], problem["file"]) == ("ORK502", "sub/steps.py")


def test_code_that_ends_its_process_is_a_problem_of_its_file_alone(tmp_path: Path) -> None:
    write(tmp_path, {"good.yaml": YAML_WORKFLOW, "bad.py": PYTHON_WORKFLOW + "import os\nos._exit(7)\n"})
    document = parsed(tmp_path)
    assert names(document) == ["from_yaml"]
    assert [(problem["file"], problem["code"]) for problem in document["problems"]] == [("bad.py", "ORK510")]
    assert "exit code 7" in document["problems"][0]["message"]


def test_what_user_code_prints_does_not_get_into_the_document(tmp_path: Path) -> None:
    write(tmp_path, {"two.py": PYTHON_WORKFLOW})
    assert b"hello from user code" not in ork_parse(cwd=tmp_path).stdout


def test_two_workflows_of_one_name_are_a_problem_of_both_files(tmp_path: Path) -> None:
    write(tmp_path, {"one.yaml": YAML_WORKFLOW, "two.yaml": YAML_WORKFLOW})
    problems = parsed(tmp_path)["problems"]
    assert [(problem["code"], problem["file"]) for problem in problems] == [
        ("ORK705", "one.yaml"),
        ("ORK705", "two.yaml"),
    ]


def test_the_projects_own_executors_are_known(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "ork.yaml": "executors: {banner: {class: 'mine:Banner'}}\n",
            "flow.yaml": "name: f\ntasks:\n  a: {executor: banner}\n",
            "mine.py": "class Banner: ...\n",
        },
    )
    assert parsed(tmp_path)["problems"] == []


def test_a_mistake_in_the_projects_file_is_told_and_nothing_else_is_tried(tmp_path: Path) -> None:
    write(tmp_path, {"ork.yaml": "pols: {}\n", "flow.yaml": YAML_WORKFLOW})
    document = parsed(tmp_path)
    assert names(document) == []
    assert [(problem["file"], problem["code"]) for problem in document["problems"]] == [("ork.yaml", "ORK101")]


def test_a_folder_that_is_not_there_is_told_in_the_document(tmp_path: Path) -> None:
    document = parsed(tmp_path / "nowhere")
    assert [problem["code"] for problem in document["problems"]] == ["ORK704"]


def test_only_files_that_define_something_are_looked_into(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "flow.yaml": YAML_WORKFLOW,
            "Taskfile.yaml": "version: 3\ntasks:\n  build: {}\n",
            "values.yaml": "a: 1\n",
            "helper.py": "import ork\n",
            "test_flow.py": PYTHON_WORKFLOW,
            "node_modules/flow.yaml": YAML_WORKFLOW,
        },
    )
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "flow.yaml").write_text(YAML_WORKFLOW)
    (tmp_path / "loop").symlink_to(tmp_path)
    assert definition_files(str(tmp_path)) == ["flow.yaml"]

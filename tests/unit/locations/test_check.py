"""Types across a workflow, with functions that a child process has looked at."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ork.compile.load import Loaded, load_workflow
from ork.locations.files import check_types


def checked(root: Path, tasks: str, *, strict: bool = False, interpreter: str | None = sys.executable) -> Loaded:
    def read(path: str) -> bytes | None:
        file = root / path
        return file.read_bytes() if file.is_file() else None

    def exists(path: str) -> bool:
        return (root / path).exists()

    text = f"name: w\ntasks:\n{tasks}".encode()
    loaded = load_workflow(text, "w.yaml", read=read, exists=exists, root=str(root))
    return check_types(loaded, root=str(root), interpreter=interpreter, cache_dir=None, strict=strict)


def codes(loaded: Loaded) -> list[str]:
    return [problem.code for problem in loaded.problems]


PAIR = "  give: {file: ./etl.py, function: give}\n  take: {file: etl.py, function: take, depends_on: [give]}\n"


def test_annotations_of_two_files_are_compared_and_nothing_is_imported_here(tmp_path: Path) -> None:
    (tmp_path / "etl.py").write_text(
        "from model import Row\ndef give() -> Row: ...\ndef take(give: int) -> None: ...\n"
    )
    (tmp_path / "model.py").write_text("from typing import NamedTuple\nclass Row(NamedTuple):\n    id: int\n")
    loaded = checked(tmp_path, PAIR)
    (problem,) = loaded.problems
    assert loaded.workflow is None
    assert problem.message == "task `take`: `give` must be int, and task `give` gives Row"
    assert problem.hint == "`take` asks for it at etl.py:3; `give` returns it at etl.py:2"
    assert not {"etl", "model"} & set(sys.modules)


def test_types_that_fit_leave_the_workflow_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "etl.py").write_text("def give() -> int: ...\ndef take(give: float) -> None: ...\n")
    assert checked(tmp_path, PAIR).workflow is not None


def test_code_without_annotations_is_not_loaded_unless_strict(tmp_path: Path) -> None:
    (tmp_path / "etl.py").write_text("open('loaded', 'w')\ndef give(): ...\ndef take(give): ...\n")
    assert codes(checked(tmp_path, PAIR)) == []
    assert not (tmp_path / "loaded").exists()
    assert codes(checked(tmp_path, PAIR, strict=True)) == ["ORK407"] * 3
    assert (tmp_path / "loaded").exists()


def test_a_file_that_cannot_be_loaded_is_taken_on_trust_unless_strict(tmp_path: Path) -> None:
    (tmp_path / "etl.py").write_text("import nowhere\ndef give() -> int: ...\ndef take(give: str) -> None: ...\n")
    assert codes(checked(tmp_path, PAIR)) == []
    strict = checked(tmp_path, PAIR, strict=True)
    assert codes(strict) == ["ORK408", "ORK408"]
    assert "No module named 'nowhere'" in strict.problems[0].message


def test_a_module_of_the_project_is_looked_into(tmp_path: Path) -> None:
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "__init__.py").write_text("def main(n: int) -> int: ...\n")
    (tmp_path / "pack" / "more.py").write_text("def main(n: int) -> int: ...\n")
    tasks = (
        "  a: {module: pack, inputs: {n: x}}\n"
        "  b: {module: pack.more}\n"
        "  c: {module: pack.more, function: nope}\n"
        "  e: {module: installed.elsewhere}\n"
    )
    assert codes(checked(tmp_path, tasks)) == ["ORK405", "ORK504", "ORK503"]


def test_a_task_of_another_environment_is_looked_at_by_its_own_python_or_not_at_all(tmp_path: Path) -> None:
    (tmp_path / "etl.py").write_text("open('loaded', 'w')\ndef main(n: int) -> int: ...\n")
    task = "  a: {file: etl.py, inputs: {n: x}, environment: %s}\n"
    assert codes(checked(tmp_path, task % "{requirements: [numpy]}")) == []
    assert not (tmp_path / "loaded").exists()
    (tmp_path / "venv" / "bin").mkdir(parents=True)
    (tmp_path / "venv" / "bin" / "python").symlink_to(sys.executable)
    assert codes(checked(tmp_path, task % "venv", interpreter=None)) == ["ORK405"]


def test_a_function_that_was_not_described_is_not_reported_as_missing(tmp_path: Path) -> None:
    (tmp_path / "etl.py").write_text("def _give() -> int: ...\ndef take(n: int) -> None: ...\n")
    tasks = "  a: {file: etl.py, function: _give}\n  b: {file: etl.py, function: take, inputs: {n: 1}}\n"
    assert codes(checked(tmp_path, tasks)) == []


@pytest.mark.parametrize("text", ["  - a\n", "  a: {file: none.py}\n"])
def test_what_is_wrong_already_stays_as_it_is(tmp_path: Path, text: str) -> None:
    assert len(codes(checked(tmp_path, text, strict=True))) == 1


def test_without_an_interpreter_types_are_taken_on_trust(tmp_path: Path) -> None:
    (tmp_path / "etl.py").write_text("def give() -> int: ...\ndef take(give: str) -> None: ...\n")
    assert codes(checked(tmp_path, PAIR, interpreter=None)) == []

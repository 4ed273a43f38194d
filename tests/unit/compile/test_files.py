"""Files that a workflow mentions are looked into, not run."""

from __future__ import annotations

import pytest

from ork.compile.load import Loaded, load_workflow
from ork.definition.project import Project
from ork.errors import DefinitionError
from ork.model.workflow import Command, Const


def load(
    task: str, python: str = "", *, top: str = "", project: Project | None = None, files: dict[str, bytes] | None = None
) -> Loaded:
    content = {"etl.py": python.encode(), **(files or {})}
    text = f"name: w\n{top}tasks:\n  up: {{command: x}}\n  a: {{{task}}}\n"
    return load_workflow(text.encode(), "w.yaml", read=content.get, project=project)


def codes(loaded: Loaded) -> list[str]:
    return [problem.code for problem in loaded.problems]


@pytest.mark.parametrize(
    "python",
    [
        "def main(): ...",
        "async def main(): ...",
        "def main(a=1, *args, b=2, **rest): ...",
        "def main(ctx): ...",
        "def main(context: Context): ...",
        "def main(context: 'ork.Context'): ...",
        "import ork\ndef main(c: ork.Context, *, d=1): ...",
        "from elsewhere import main",
        "from elsewhere import *",
        "from functools import partial\nmain = partial(print)",
        "class main: ...",
        "@decorated\ndef main(whatever): ...",
        "try:\n    from fast import main\nexcept ImportError:\n    def main(): ...",
        "if True:\n    def main(): ...",
        "a, main = 1, print",
    ],
)
def test_a_function_that_can_be_called_is_accepted(python: str) -> None:
    assert codes(load("file: etl.py", python)) == []


@pytest.mark.parametrize(
    ("task", "top"),
    [
        ("inputs: {rows: 1}", ""),
        ("inputs: {rows: null}", ""),
        ("depends_on: [rows]", "params: {q: 1}\n"),
        ("retries: 1", "params: {rows: 1}\n"),
    ],
)
def test_arguments_come_from_inputs_upstream_tasks_and_params(task: str, top: str) -> None:
    text = f"name: w\n{top}tasks:\n  rows: {{command: x}}\n  a: {{file: etl.py, {task}}}\n"
    loaded = load_workflow(text.encode(), "w.yaml", read={"etl.py": b"def main(rows): ..."}.get)
    assert loaded.problems == ()


def test_a_missing_argument_names_both_files() -> None:
    (problem,) = load("file: etl.py", "\n\ndef main(rows, /, day, *, table): ...").problems
    assert (problem.code, problem.file, problem.line, problem.column) == ("ORK504", "w.yaml", 4, 13)
    assert problem.message == "function `main` needs `rows`, `day`, `table`, but nothing provides them"
    assert "etl.py:3" in str(problem.hint)


def test_a_missing_argument_with_the_name_of_a_task_suggests_depends_on() -> None:
    (problem,) = load("file: etl.py", "def main(up): ...").problems
    assert (problem.code, problem.hint) == ("ORK504", "add `up` to `depends_on`; the function is at etl.py:1")


def test_a_misspelt_dependency_is_not_also_a_missing_argument() -> None:
    assert codes(load("file: etl.py, depends_on: [upp]", "def main(up): ...")) == ["ORK201"]


def test_a_missing_function_lists_the_existing_ones() -> None:
    (close,) = load("file: etl.py, function: extrct", "def extract(): ...").problems
    assert (close.code, close.hint) == ("ORK503", "did you mean `extract`?")
    (far,) = load("file: etl.py", "def zzz(): ...").problems
    assert (far.code, far.hint) == ("ORK503", "it has `zzz`: name one with `function:`")
    (none,) = load("file: etl.py", "x = 1").problems
    assert (none.code, none.hint) == ("ORK503", "add `def main(): …` to it")


def test_every_missing_file_is_reported() -> None:
    text = b"name: w\ntasks:\n  a: {file: no.py}\n  b: {file: no.py}\n"
    loaded = load_workflow(text, "w.yaml", read=lambda path: None)
    assert [(problem.code, problem.line) for problem in loaded.problems] == [("ORK501", 3), ("ORK501", 4)]


def test_a_file_is_read_once_however_many_tasks_use_it() -> None:
    asked: list[str] = []

    def read(path: str) -> bytes:
        asked.append(path)
        return b"def main(): ..."

    text = b"name: w\ntasks:\n" + b"".join(b"  t%d: {file: etl.py}\n" % index for index in range(50))
    assert load_workflow(text, "w.yaml", read=read).problems == ()
    assert asked == ["etl.py"]


@pytest.mark.parametrize("command", ["echo hi", "/opt/tool", "python3 -V", "[{ref: params.p}]"])
def test_a_program_that_is_no_relative_path_is_not_looked_for(command: str) -> None:
    assert codes(load(f"command: {command}", top="params: {p: 1}\n")) == []


def test_a_script_named_as_a_file_is_found_in_the_folder_first_and_in_script_dir_next() -> None:
    project = Project(script_dir="scripts")
    here = load("file: run.sh", project=project, files={"run.sh": b"", "scripts/run.sh": b""}).require()
    assert here.tasks[1].action == Command((Const("./run.sh"),))
    there = load("file: run.sh", project=project, files={"scripts/run.sh": b""}).require()
    assert there.tasks[1].action == Command((Const("run.sh"),))
    assert codes(load("file: run.sh", project=project)) == ["ORK501"]


def test_names_of_pools_and_alerts_are_checked_where_the_project_lists_them() -> None:
    project = Project(pools={"api": 2}, alerts={"ops": {}})
    wrong = load("command: x, pool: apy", top="alerts: [opps]\n", project=project)
    assert [(problem.code, problem.hint) for problem in wrong.problems] == [
        ("ORK208", "did you mean `ops`?"),
        ("ORK207", "did you mean `api`?"),
    ]
    assert codes(load("command: x, pool: api", top="alerts: [ops]\n", project=project)) == []
    assert codes(load("command: x, pool: any", top="alerts: [any]\n", project=Project())) == []


def test_requiring_a_workflow_with_mistakes_raises_them_all() -> None:
    loaded = load("comand: x")
    with pytest.raises(DefinitionError) as refused:
        loaded.require()
    assert refused.value.problems == loaded.problems


def test_a_parameter_one_letter_off_a_dependency_is_named() -> None:
    text = b"name: w\ntasks:\n  extract: {command: x}\n  load: {file: a.py, depends_on: [extract]}\n"
    (problem,) = load_workflow(text, "w.yaml", read={"a.py": b"def main(extrct): ...\n"}.get).problems
    assert problem.code == "ORK504"
    assert "did you mean `extract`? Rename the parameter at a.py:1" in str(problem.hint)

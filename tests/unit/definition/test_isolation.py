"""How the process of a task comes about: said by the task, its defaults or the project."""

from __future__ import annotations

from pathlib import Path

import pytest

from ork.compile.load import Loaded, load_workflow
from ork.errors import DefinitionError, UsageError
from ork.model.workflow import Isolation
from ork.settings import load_settings


def load(text: str) -> Loaded:
    return load_workflow(text.encode(), "flow.yaml", read={}.get)


def isolations(text: str) -> list[Isolation | None]:
    return [task.isolation for task in load(text).require().tasks]


def test_isolation_is_set_by_task_defaults_or_project() -> None:
    tasks = "tasks:\n  a: {command: x, isolation: fork}\n  b: {command: x}\n"
    assert isolations("name: f\n" + tasks) == [Isolation.FORK, None]
    assert isolations("name: f\ntasks: {a: {module: x, isolation: shared}}\n") == [Isolation.SHARED]
    defaults = "defaults: {isolation: interpreter}\n"
    assert isolations("name: f\n" + defaults + tasks) == [Isolation.FORK, Isolation.INTERPRETER]


def test_a_program_cannot_share_a_process_but_may_stand_among_functions_that_do() -> None:
    (problem,) = load("name: f\ntasks:\n  a: {command: x, isolation: shared}\n").problems
    assert (problem.code, problem.line) == ("ORK115", 3)
    assert "only Python functions" in problem.message
    assert isolations("name: f\ndefaults: {isolation: shared}\ntasks: {a: {command: x}}\n") == [Isolation.SHARED]


def test_an_unknown_isolation_is_refused_with_its_place() -> None:
    (problem,) = load("name: f\ntasks:\n  a: {command: x, isolation: forks}\n").problems
    assert problem.line == 3
    assert "fork" in (problem.hint or "") + problem.message


def test_the_environment_goes_before_the_project_file(tmp_path: Path) -> None:
    folder = str(tmp_path)
    assert load_settings(folder=folder, environ={}).isolation == "fork"
    (tmp_path / "ork.yaml").write_text("isolation: interpreter\n")
    assert load_settings(folder=folder, environ={}).isolation == "interpreter"
    assert load_settings(folder=folder, environ={"ORK_ISOLATION": "fork"}).isolation == "fork"
    assert load_settings(folder=folder, environ={"ORK_ISOLATION": "shared"}).isolation == "shared"
    with pytest.raises(UsageError, match="ORK_ISOLATION"):
        load_settings(folder=folder, environ={"ORK_ISOLATION": "none"})
    (tmp_path / "ork.yaml").write_text("isolation: none\n")
    with pytest.raises(DefinitionError):
        load_settings(folder=folder, environ={})

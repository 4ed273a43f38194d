"""Environments, Rust programs and imports as they are written: what is right, and what is refused where."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import dedent

import pytest

from ork.compile.load import Loaded, load_workflow
from ork.model.workflow import Const, Environment, Ref, RustProgram, TaskSpec

HEADER = b'# /// script\n# dependencies = ["pandas"]\n# ///\n'
FILES = {
    "plain.py": b"def main(): ...\n",
    "needy.py": HEADER + b"def main(): ...\n",
    "broken.py": b"# /// script\n# dependencies = [\n# ///\ndef main(): ...\n",
    "requirements.txt": b"pandas\n",
    "env/bin/python": b"",
    "main.rs": b"fn main() {}",
    "crate/Cargo.toml": b"[package]\n",
    "crate": b"",
    "folder": b"",
}


def load(text: str, files: Mapping[str, bytes] = FILES) -> Loaded:
    return load_workflow(dedent(text).encode(), "w.yaml", read=files.get)


def task(body: str, top: str = "") -> TaskSpec:
    loaded = load(f"name: w\n{top}\ntasks: {{a: {body}}}\n")
    return loaded.require().tasks[0]


def assert_refused(body: str, code: str) -> None:
    """The only problem of the task is where the mark § stands."""
    line = f"  a: {body}"
    found = load(f"name: w\ntasks:\n{line.replace('§', '')}\n").problems
    assert [(problem.code, problem.line, problem.column) for problem in found] == [(code, 3, line.index("§") + 1)]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("env", Environment(path="env")),
        ("script", Environment(script=True)),
        ("{requirements: [pandas>=2, rich]}", Environment(requirements=("pandas>=2", "rich"))),
        ("{requirements: requirements.txt}", Environment(requirements_file="requirements.txt")),
        ("{requirements_file: requirements.txt}", Environment(requirements_file="requirements.txt")),
    ],
)
def test_an_environment_is_a_folder_or_requirements_or_the_scripts_own(written: str, meant: Environment) -> None:
    assert task(f"{{file: needy.py, environment: {written}}}").environment == meant


def test_commands_have_environments_too() -> None:
    assert task("{command: x, environment: env}").environment == Environment(path="env")


@pytest.mark.parametrize("top", ["environment: env", "defaults: {environment: env}"])
def test_defaults_may_set_the_environment(top: str) -> None:
    assert task("{file: plain.py}", top).environment == Environment(path="env")
    assert task("{file: plain.py, environment: {requirements: [x]}}", top).environment == Environment(
        requirements=("x",)
    )


def test_defaults_without_effect_on_a_task_are_ignored() -> None:
    assert task("{command: x}", "environment: script").environment is None
    assert task("{file: plain.py}", "environment: script").environment is None
    assert task("{workflow: other}", "environment: env").environment is None
    assert task("{file: needy.py}", "environment: script").environment == Environment(script=True)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("{file: plain.py, environment: §nowhere}", "ORK506"),
        ("{file: plain.py, environment: §script}", "ORK506"),
        ("{file: broken.py, environment: §script}", "ORK506"),
        ("{command: x, environment: §script}", "ORK506"),
        ("{workflow: other, environment: §env}", "ORK506"),
        ("{file: plain.py, environment: §{requirements: nowhere.txt}}", "ORK501"),
        ("{file: plain.py, environment: {requirements: §[]}}", "ORK121"),
        ("{file: plain.py, environment: {requirements: [§'']}}", "ORK121"),
        ("{file: plain.py, environment: {requirements: §{a: 1}}}", "ORK103"),
        ("{file: plain.py, environment: §{}}", "ORK121"),
        ("{file: plain.py, environment: §[pandas]}", "ORK103"),
        ("{file: plain.py, environment: §{requirements: [a], requirements_file: b}}", "ORK121"),
        ("{file: plain.py, environment: {§requirement: [a]}}", "ORK101"),
    ],
)
def test_a_mistake_in_an_environment_has_its_code_and_place(body: str, code: str) -> None:
    assert_refused(body, code)


def test_a_rust_file_needs_no_executor_and_a_crate_does() -> None:
    assert task("{file: main.rs}").action == RustProgram("main.rs")
    assert task("{executor: rust, file: crate}").action == RustProgram("crate")
    assert task("{file: main.rs}").executor == "rust"


def test_arguments_of_a_rust_program_may_point_somewhere() -> None:
    loaded = load(
        """
        name: w
        params: {day: 1}
        tasks:
          a: {file: main.rs}
          b: {file: main.rs, args: [--day, {ref: params.day}, {ref: tasks.a.output}]}
        """
    )
    second = loaded.require().tasks[1]
    args = (Const("--day"), Ref(("params", "day")), Ref(("tasks", "a", "output")))
    assert second.action == RustProgram("main.rs", args)
    assert second.depends_on == ("a",)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("{file: §nowhere.rs}", "ORK501"),
        ("{executor: rust, file: §folder}", "ORK507"),
        ("{executor: rust, command: §x}", "ORK115"),
        ("{file: main.rs, function: §main}", "ORK115"),
        ("{file: plain.py, args: §[x]}", "ORK115"),
        ("{file: main.rs, args: [{ref: §params.day}]}", "ORK206"),
    ],
)
def test_a_mistake_in_a_rust_task_has_its_code_and_place(body: str, code: str) -> None:
    assert_refused(body, code)

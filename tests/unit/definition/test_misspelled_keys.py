"""One misspelled key is one error: that the key it was meant to be is missing is not said as well."""

from __future__ import annotations

import pytest

from ork.compile.load import load_workflow
from ork.definition.locations_file import load_locations
from ork.definition.project_file import load_project


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("name: w\ntasks: {a: {comand: x}}", "did you mean `command`?"),
        ("name: w\ntasks: {a: {imag: busybox}}", "did you mean `image`?"),
        ("name: w\ntasks: {a: {workflo: x}}", "did you mean `workflow`?"),
        ("name: w\ntasks: {a: {approval: {mesage: x}}}", "did you mean `message`?"),
        ("name: w\ntask: {a: {command: x}}", "did you mean `tasks`?"),
        ("nam: w\ntasks: {a: {command: x}}", "did you mean `name`?"),
        ("name: w\nbudgt: {usd: 5}\ntasks: {a: {command: x}}", "did you mean `budget`?"),
        ("name: w\nbudget: {usd: 5, on_exced: alert}\ntasks: {a: {command: x}}", "did you mean `on_exceed`?"),
        ("name: w\nschedule: {cro: 0 2 * * *}\ntasks: {a: {command: x}}", "did you mean `cron`?"),
    ],
)
def test_in_a_workflow(text: str, hint: str) -> None:
    problems = load_workflow(text.encode(), "w.yaml", read={}.get).problems
    assert [(problem.code, problem.hint) for problem in problems] == [("ORK101", hint)]


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("secrets: {A: {frm: env}}", "did you mean `from`?"),
        ("pools: {a: {slts: 2}}", "did you mean `slots`?"),
    ],
)
def test_in_a_project(text: str, hint: str) -> None:
    _, problems = load_project(text.encode())
    assert [(problem.code, problem.hint) for problem in problems] == [("ORK101", hint)]


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("- {name: etl, imag: x}", "did you mean `image`?"),
        ("- {nme: etl, path: x}", "did you mean `name`?"),
    ],
)
def test_in_a_list_of_locations(text: str, hint: str) -> None:
    _, problems = load_locations(text.encode())
    assert [(problem.code, problem.hint) for problem in problems] == [("ORK101", hint)]


def test_an_unknown_key_does_not_count_as_a_required_one() -> None:
    problems = load_workflow(b"name: w\ntasks: {a: {zzz: x}}", "w.yaml", read={}.get).problems
    assert [problem.code for problem in problems] == ["ORK602", "ORK101"]

"""How a mistake looks."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ork.compile.load import load_workflow
from ork.definition.problems import (
    Problem,
    quoted,
    render_concise,
    render_full,
    render_github,
    to_json,
)

PROBLEM = Problem(
    "ORK201",
    "task `load` depends on `transfrom`, which is not a task",
    "workflow.yaml",
    14,
    18,
    27,
    "    depends_on: [transfrom]",
    "did you mean `transform`?",
)


def test_the_full_form_shows_the_place_the_line_a_caret_and_the_help() -> None:
    assert render_full(PROBLEM).splitlines() == [
        "error[ORK201]: task `load` depends on `transfrom`, which is not a task",
        "  --> workflow.yaml:14:18",
        "   |",
        "14 |     depends_on: [transfrom]",
        "   |                  ^^^^^^^^^",
        "   = help: did you mean `transform`?",
    ]


def test_a_problem_of_a_whole_file_has_no_line_to_show() -> None:
    assert render_full(Problem("ORK112", "the file is empty", "w.yaml")).splitlines() == [
        "error[ORK112]: the file is empty",
        "--> w.yaml:1:1",
    ]


def test_the_style_colours_parts_and_changes_nothing_else() -> None:
    styled = render_full(PROBLEM, lambda role, text: f"<{role}>{text}</>")
    assert "<error>error[ORK201]</>" in styled
    assert "<help>= help:</>" in styled


def test_the_concise_form_is_one_line() -> None:
    assert render_concise(PROBLEM) == (
        "workflow.yaml:14:18: ORK201 task `load` depends on `transfrom`, which is not a task"
    )


def test_the_github_form_is_a_workflow_command_that_text_cannot_break_out_of() -> None:
    shown = render_github(Problem("ORK101", "a\n::error::b%", "d:i,r.yaml", 1, 2, 3))
    assert shown == "::error file=d%3Ai%2Cr.yaml,line=1,col=2,endColumn=3,title=ORK101::a%0A::error::b%25"


def test_the_json_form_has_the_promised_keys() -> None:
    assert set(to_json(PROBLEM)) == {"file", "line", "column", "code", "message", "hint"}
    assert json.loads(json.dumps(to_json(PROBLEM))) == to_json(PROBLEM)


def test_the_caret_stays_under_its_word_in_a_very_long_line() -> None:
    line = "x" * 5000 + "HERE" + "y" * 5000
    lines = render_full(Problem("ORK101", "m", "f", 1, 5001, 5005, line)).splitlines()
    start = lines[4].index("^")
    assert lines[3][start : start + 4] == "HERE"
    assert max(map(len, lines)) < 140


def test_the_caret_stays_under_its_word_behind_wide_letters() -> None:
    lines = render_full(Problem("ORK101", "m", "f", 1, 3, 4, "日本x")).splitlines()
    assert lines[4].index("^") == len("1 | ") + 4


@given(st.text(max_size=300), st.integers(-5, 400), st.integers(-5, 400), st.text(max_size=20))
def test_no_text_can_reach_the_terminal_as_a_control_character(line: str, start: int, end: int, name: str) -> None:
    shown = render_full(Problem("ORK101", name, name, 7, start, end, line, name))
    assert not {unicodedata.category(part) for part in shown.replace("\n", "")} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert len(shown.splitlines()) == (6 if name else 5)


def test_a_hostile_name_is_cut_and_made_safe() -> None:
    assert quoted("\x1b[31m" + "x" * 500) == "`␛[31m" + "x" * 54 + "…`"


@pytest.mark.parametrize(
    ("word", "ours"), [("run", "command"), ("script", "command"), ("needs", "depends_on"), ("retry", "retries")]
)
def test_keys_of_other_tools_are_suggested(word: str, ours: str) -> None:
    text = f"name: f\ntasks:\n  a:\n    command: x\n    {word}: b\n"
    (problem,) = load_workflow(text.encode(), "flow.yaml", read={}.get).problems
    assert problem.hint == f"that is `{ours}` here"

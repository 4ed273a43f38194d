"""Types in workflow files: `types`, `input_type`, `output_type` and the types of params."""

from __future__ import annotations

from typing import Any

import pytest

from ork.compile.content import from_document, to_document
from ork.compile.load import Loaded, load_workflow
from ork.model.workflow import CompiledWorkflow, ParamType


def load(text: str) -> Loaded:
    return load_workflow(f"name: w\n{text}".encode(), "w.yaml", read=lambda path: None)


def places(text: str) -> list[tuple[str, int, int]]:
    return [(problem.code, problem.line, problem.column) for problem in load(text).problems]


def workflow(text: str) -> CompiledWorkflow:
    return load(text).require()


TASKS = "tasks:\n  a: {command: x}\n"


def test_types_are_kept_by_name_and_may_use_each_other_in_any_order() -> None:
    text = (
        "tasks:\n  a:\n    command: x\n    output_type: list[Order]?\n    input_type:\n      rows: list[Line]\n      when: date\n"
        "types:\n  Order:\n    lines: list[Line]\n    note?: str\n    parent: Order?\n  Line: {qty: int}\n  Ids: list[int]\n"
    )
    found = workflow(text)
    assert dict(found.types) == {
        "Order": {
            "object": {"lines": {"list": "Line"}, "note": "str", "parent": {"union": ["Order", "none"]}},
            "optional": ["note"],
        },
        "Line": {"object": {"qty": "int"}},
        "Ids": {"list": "int"},
    }
    assert found.tasks[0].output_type == "list[Order]?"
    assert found.tasks[0].input_types == (("rows", "list[Line]"), ("when", "date"))
    assert from_document(to_document(found)) == found


def test_one_input_type_alone_is_for_the_whole_input_and_a_map_as_output_is_an_object() -> None:
    (task,) = workflow(
        'tasks:\n  a:\n    command: x\n    input_type: list[ int ]\n    output_type: {n: int, "m?": str}\n'
    ).tasks
    assert task.input_types == (("", "list[int]"),)
    assert task.output_type == "{n: int, m?: str}"


@pytest.mark.parametrize(
    ("written", "kind", "required", "default"),
    [
        ("list[str]", "list[str]", True, None),
        ("int?", "int?", True, None),
        ("Row", "Row", True, None),
        ("date", ParamType.DATE, True, None),
        ('"list[str]"', ParamType.ANY, False, "list[str]"),
        ("rows", ParamType.ANY, False, "rows"),
        ('{type: "list[Row]", default: [{id: 1}]}', "list[Row]", False, [{"id": 1}]),
        ("{type: {id: int}, default: {id: 1}}", "{id: int}", False, {"id": 1}),
    ],
)
def test_a_param_may_have_any_type(written: str, kind: str, required: bool, default: Any) -> None:
    (param,) = workflow(f"params:\n  p: {written}\n{TASKS}types: {{Row: {{id: int}}}}\n").params
    assert (param.type, param.required, param.default) == (kind, required, default)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"types: [a]\n{TASKS}", [("ORK103", 2, 8)]),
        (f"types: {{str: int}}\n{TASKS}", [("ORK105", 2, 9)]),
        (f"types: {{a-b: int}}\n{TASKS}", [("ORK105", 2, 9)]),
        (f"types: {{A: {{x: B}}}}\n{TASKS}", [("ORK402", 2, 16)]),
        (f"types: {{A: A}}\n{TASKS}", [("ORK402", 2, 9)]),
        (f"types:\n  A: B?\n  B: int | A\n{TASKS}", [("ORK402", 3, 3)]),
        (f"types: {{A: [int]}}\n{TASKS}", [("ORK103", 2, 12)]),
        ("tasks:\n  a:\n    command: x\n    output_type: list[strng]\n", [("ORK402", 5, 23)]),
        ('tasks:\n  a: {command: x, output_type: "list[strng]"}\n', [("ORK402", 3, 38)]),
        ("tasks:\n  a:\n    command: x\n    input_type: {x: Row}\n", [("ORK402", 5, 21)]),
        (f"params: {{d: {{type: dates}}}}\n{TASKS}", [("ORK402", 2, 20)]),
        (f'params: {{d: {{type: "list[int]", default: [a]}}}}\n{TASKS}', [("ORK401", 2, 42)]),
    ],
)
def test_a_mistake_in_a_type_has_its_code_and_its_place(text: str, expected: list[tuple[str, int, int]]) -> None:
    assert places(text) == expected


@pytest.mark.parametrize(
    ("written", "hint"),
    [("strng", "did you mean `str`?"), ("string", "write `str`"), ("Ordr", "did you mean `Order`?")],
)
def test_an_unknown_type_is_told_what_may_have_been_meant(written: str, hint: str) -> None:
    text = f"tasks:\n  a: {{command: x, output_type: {written}}}\ntypes: {{Order: {{id: int}}}}\n"
    (problem,) = load(text).problems
    assert problem.hint == hint

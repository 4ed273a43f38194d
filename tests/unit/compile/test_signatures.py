"""Types across tasks: what one gives against what the next one asks for, with the place in both files."""

from __future__ import annotations

from typing import Any

import pytest

from ork.compile.described import FunctionSignature, UninspectedFunction, read_signature
from ork.compile.load import finish_draft, load_workflow
from ork.compile.signatures import check_signatures
from ork.definition.problems import Problem
from ork.worker.convert.annotations import describe_function


def described(python: str) -> dict[str, FunctionSignature | UninspectedFunction | None]:
    space: dict[str, Any] = {"__name__": "etl"}
    exec(compile(python, "etl.py", "exec", dont_inherit=True), space)
    functions = {name: each for name, each in space.items() if hasattr(each, "__code__")}
    return {
        f"etl.py:{name}": read_signature(f"etl.py:{name}", describe_function(each)) for name, each in functions.items()
    }


def problems(
    tasks: str,
    python: str = "",
    *,
    top: str = "",
    strict: bool = False,
    functions: dict[str, FunctionSignature | UninspectedFunction | None] | None = None,
) -> tuple[Problem, ...]:
    text = f"name: w\n{top}tasks:\n{tasks}"
    loaded = load_workflow(text.encode(), "w.yaml", read={"etl.py": python.encode()}.get)
    assert loaded.draft is not None
    check_signatures(loaded.draft, described(python) | (functions or {}), strict=strict)
    return finish_draft(loaded.draft).problems


PYTHON = """
from dataclasses import dataclass

@dataclass
class Order:
    id: int
    note: str = ""

def orders() -> list[Order]: ...
def names() -> list[str]: ...
def count() -> int: ...
def nothing() -> None: ...
def take_orders(orders: list[Order]) -> int: ...
def take_names(orders: list[str]) -> int: ...
def take_number(number: int, factor: float = 1.0) -> float: ...
def take_item(item: str) -> int: ...
def take_counts(each: list[int]) -> int: ...
def take_table(each: list[list[int]]) -> int: ...
def untyped(x): ...
"""


def test_types_that_fit_are_no_problem() -> None:
    tasks = (
        "  orders: {file: etl.py, function: orders}\n"
        "  total: {file: etl.py, function: take_orders, depends_on: [orders]}\n"
        "  number: {file: etl.py, function: take_number, inputs: {number: {ref: total}, factor: 2}}\n"
        "  bare: {file: etl.py, function: untyped, inputs: {x: {ref: number}}}\n"
    )
    assert problems(tasks, PYTHON) == ()


def test_a_type_mismatch_between_tasks_names_both_files() -> None:
    tasks = (
        "  orders: {file: etl.py, function: orders}\n"
        "  total: {file: etl.py, function: take_names, depends_on: [orders]}\n"
    )
    (problem,) = problems(tasks, PYTHON)
    assert (problem.code, problem.file, problem.line, problem.column) == ("ORK405", "w.yaml", 4, 60)
    assert problem.message == (
        "task `total`: `orders` must be list[str], and task `orders` gives list[Order]: []: Order is not str"
    )
    assert problem.hint == "`total` asks for it at etl.py:14; `orders` returns it at etl.py:9"


def test_a_wrong_type_a_missing_argument_and_an_unknown_function_are_three_problems_of_one_answer() -> None:
    tasks = (
        "  orders: {file: etl.py, function: orders}\n"
        "  total: {file: etl.py, function: take_names, depends_on: [orders]}\n"
        "  number: {file: etl.py, function: take_number}\n"
        "  lost: {file: etl.py, function: ordrs}\n"
    )
    found = problems(tasks, PYTHON)
    assert [(each.code, each.line) for each in found] == [("ORK405", 4), ("ORK504", 5), ("ORK503", 6)]


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ("{number: text}", '`number` must be int, and this is not: expected int, got "text"'),
        ("{number: {ref: names}}", "`number` must be int, and task `names` gives list[str]"),
        ('{number: {ref: "names[0]"}}', "`number` must be int, and `tasks.names.output[0]` is str"),
        ("{number: {ref: params.day}}", "`number` must be int, and `params.day` is date"),
        ("{number: {ref: run.id}}", "`number` must be int, and `run.id` is str"),
        ("{number: {secret: PIN}}", "`number` must be int, and a secret is text"),
        ("{number: {ref: nothing}}", "`number` must be int, and task `nothing` gives none"),
        ("{number: null}", "`number` must be int, and this is not: expected int, got null"),
    ],
)
def test_every_kind_of_input_is_compared(inputs: str, message: str) -> None:
    tasks = (
        "  names: {file: etl.py, function: names}\n"
        "  nothing: {file: etl.py, function: nothing}\n"
        f"  a:\n    file: etl.py\n    function: take_number\n    inputs: {inputs}\n"
    )
    (problem,) = problems(tasks, PYTHON, top="params: {day: date}\n")
    assert (problem.code, problem.line) == ("ORK405", 9)
    assert problem.message == f"task `a`: {message}"


def test_a_param_of_the_same_name_is_compared() -> None:
    (problem,) = problems("  a: {file: etl.py, function: take_number}\n", PYTHON, top="params: {number: date}\n")
    assert problem.message == "task `a`: `number` must be int, and `params.number` is date"


@pytest.mark.parametrize(
    ("fan", "function", "count"),
    [
        ("foreach: names", "take_counts", 0),
        ("foreach: names", "take_table", 1),
        ("foreach: names, parallel: 2", "take_table", 0),
        ("foreach: names, parallel: 2", "take_counts", 1),
        ("foreach: [a, b]", "take_counts", 0),
        ("foreach: [a, 1]", "take_counts", 1),
        ("foreach: orders", "take_counts", 1),
        ("foreach: count", "take_counts", 1),
        ("foreach: names, parallel: names", "take_table", 1),
        ("foreach: names, parallel: count", "take_table", 0),
    ],
)
def test_instances_take_an_item_and_give_a_list(fan: str, function: str, count: int) -> None:
    tasks = (
        "  names: {file: etl.py, function: names}\n"
        "  orders: {file: etl.py, function: orders}\n"
        "  count: {file: etl.py, function: count}\n"
        f"  each: {{file: etl.py, function: take_item, {fan}}}\n"
        f"  join: {{file: etl.py, function: {function}, depends_on: [each]}}\n"
    )
    assert [each.code for each in problems(tasks, PYTHON)] == ["ORK405"] * count


@pytest.mark.parametrize("ref", ["orders.id", "orders[0].nope", "params.n.field", "orders[0].id[0]"])
def test_a_ref_to_a_field_that_is_not_there_is_one_problem(ref: str) -> None:
    tasks = (
        "  orders: {file: etl.py, function: orders}\n"
        f'  a: {{file: etl.py, function: take_number, inputs: {{number: {{ref: "{ref}"}}}}}}\n'
    )
    (problem,) = problems(tasks, PYTHON, top="params: {n: int}\n")
    assert (problem.code, problem.line) == ("ORK406", 5)


def test_a_ref_into_an_untyped_output_is_not_checked() -> None:
    tasks = '  a: {command: x}\n  b: {command: [y, {ref: "a.b[0].c"}]}\n'
    assert problems(tasks) == ()


TYPES = 'types:\n  Row: {id: int, "note?": str}\n'


@pytest.mark.parametrize(
    ("output", "given", "wanted", "count"),
    [
        ("list[Row]", "", '"list[Row]"', 0),
        ("list[Row]", "", '"list[{id: int}]"', 0),
        ("Row", "", "{id: int}", 0),
        ("Row", "", "{id: str}", 1),
        ("list[Row]", "", "Row", 1),
        ("list[Row]", "foreach: a, ", "Row", 0),
        ("list[Row]", "foreach: a, ", "int", 1),
        ("list[Row]", "inputs: {x: {ref: a}}, ", "{x: int}", 1),
        ("list[Row]", "inputs: {x: {ref: a}}, ", '{x: "list[Row]"}', 0),
    ],
)
def test_declared_types_of_commands_are_compared(output: str, given: str, wanted: str, count: int) -> None:
    tasks = (
        f"  a:\n    command: x\n    output_type: {output}\n"
        f"  b: {{command: y, depends_on: [a], {given}input_type: {wanted}}}\n"
    )
    assert [each.code for each in problems(tasks, top=TYPES)] == ["ORK405"] * count


def test_an_annotation_must_fit_the_declared_output_which_counts_for_others() -> None:
    tasks = (
        "  names: {file: etl.py, function: names, output_type: int}\n"
        "  a: {file: etl.py, function: take_number, inputs: {number: {ref: names}}}\n"
    )
    (problem,) = problems(tasks, PYTHON)
    assert problem.message == "task `names`: its output must be int, and `names` gives list[str]"
    assert problem.hint == "the function is at etl.py:10"


def test_a_decorated_function_is_checked_by_its_description() -> None:
    python = "def plain(function): return function\n@plain\ndef main(rows: int, table: str): ...\n"
    (lacking,) = problems("  a: {file: etl.py, inputs: {rows: 1}}\n", python)
    assert (lacking.code, lacking.message) == ("ORK504", "function `main` needs `table`, but nothing provides it")
    (unknown,) = problems("  a: {file: etl.py, inputs: {rows: 1, table: a, tabel: b}}\n", python)
    assert (unknown.code, unknown.hint) == ("ORK505", "did you mean `table`?")


def test_a_function_missing_in_a_module_is_reported() -> None:
    (problem,) = problems("  a: {module: etl, function: nope}\n", functions={"etl:nope": None})
    assert (problem.code, problem.message) == ("ORK503", "`etl` has no function `nope`")


def test_an_uninspected_function_is_not_checked() -> None:
    assert (
        problems("  a: {module: etl, inputs: {x: 1}}\n", functions={"etl:main": UninspectedFunction("a storm")}) == ()
    )


def test_strict_asks_for_a_type_of_every_input_and_output() -> None:
    tasks = (
        "  count: {file: etl.py, function: count}\n"
        "  bare: {file: etl.py, function: untyped, inputs: {x: 1}}\n"
        "  half: {file: etl.py, function: untyped, inputs: {x: 1}, input_type: {x: int}, output_type: none}\n"
        "  shell: {command: x, depends_on: [count]}\n"
        "  alone: {command: x, output_type: none}\n"
        "  told: {command: x, depends_on: [count], input_type: int, output_type: none}\n"
    )
    assert problems(tasks, PYTHON) == ()
    found = problems(tasks, PYTHON, strict=True)
    assert [(each.code, each.line, each.message) for each in found] == [
        ("ORK407", 4, "task `bare`: there is no type for `x`"),
        ("ORK407", 4, "task `bare`: there is no type for its output"),
        ("ORK407", 6, "task `shell`: there is no type for `count`"),
        ("ORK407", 6, "task `shell`: there is no type for its output"),
    ]
    assert found[0].hint == "annotate the function at etl.py:19, or add `input_type:`"


def test_strict_reports_why_a_function_could_not_be_inspected() -> None:
    functions: dict[str, FunctionSignature | UninspectedFunction | None] = {"etl:main": UninspectedFunction("a storm")}
    (problem,) = problems("  a: {module: etl}\n", strict=True, functions=functions)
    assert (problem.code, "a storm" in problem.message) == ("ORK408", True)
    told = "  a: {module: etl, output_type: int}\n"
    assert problems(told, strict=True, functions=functions) == ()


def test_strict_reports_a_missing_function_once() -> None:
    assert [each.code for each in problems("  a: {file: etl.py}\n", "x = 1", strict=True)] == ["ORK503"]

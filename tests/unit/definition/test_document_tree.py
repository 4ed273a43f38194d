"""A definition that came as data is read like YAML, and its mistakes are shown where they were written."""

from __future__ import annotations

from typing import Any

from ork.compile.load import Loaded, load_tree
from ork.definition.document_tree import document_tree
from ork.definition.report import ProblemReport

SOURCE = """\
from ork import Workflow, ref

etl = Workflow("etl", schedule="never", fail_fst=True)

@etl.task(retries="many", inputs={"a": ref("tasks.nix.output"), "ü": [1, {"ref": "params.b"}]})
async def extract(load): ...

@etl.task
def load(extract): ...

etl.command("say", ["echo", "a", dict(ref="params.c")], depends_on=("extract", "nobody"))
"""


def loaded(document: dict[str, Any], lines: dict[str, int]) -> Loaded:
    report = ProblemReport("flow.py", SOURCE)
    return load_tree(document_tree(document, SOURCE, 3, lines), report, read=None)


def marked(found: Loaded) -> dict[str, list[str]]:
    """What each problem points at, by its code."""
    told: dict[str, list[str]] = {}
    for problem in found.problems:
        text = str(problem.source_line)[problem.column - 1 : problem.end_column - 1]
        told.setdefault(problem.code, []).append(f"{problem.line}: {text}")
    return told


def test_mistakes_are_shown_at_the_value_keyword_or_parameter_that_holds_them() -> None:
    document = {
        "name": "etl",
        "schedule": "never",
        "fail_fst": True,
        "tasks": {
            "extract": {
                "module": "m",
                "retries": "many",
                "inputs": {"a": {"ref": "tasks.nix.output"}, "ü": [1, {"ref": "params.b"}]},
                "depends_on": ["load"],
            },
            "load": {"module": "m", "depends_on": ["extract"]},
            "say": {"command": ["echo", "a", {"ref": "params.c"}], "depends_on": ["extract", "nobody"]},
        },
    }
    told = marked(loaded(document, {"extract": 5, "load": 8, "say": 11}))
    assert told["ORK301"] == ['3: "never"']
    assert told["ORK101"] == ["3: fail_fst"]
    assert told["ORK103"] == ['5: "many"']
    assert told["ORK205"] == ['5: "tasks.nix.output"']
    assert told["ORK204"] == ['5: {"ref": "params.b"}']
    assert told["ORK206"] == ['11: "params.c"']
    assert told["ORK201"] == ['11: "nobody"']
    assert told["ORK203"][0] in ("6: load", "9: extract")


def test_a_value_without_a_position_is_shown_at_its_task() -> None:
    document = {"name": "etl", "tasks": {"extract": {"module": "m", "timeout": -1}, "x": {"command": []}}}
    told = marked(loaded(document, {"extract": 5, "x": 99}))
    assert told["ORK114"] == ["6: extract"]
    assert told["ORK116"][0].startswith("99:")


def test_values_keep_their_kind_whatever_they_look_like() -> None:
    constants = ["1", 1, 1.5, True, None, "true", "null", "~", "1e3", "", [], {}, -0.0, 1e300]
    document = {"name": "etl", "tasks": {"a": {"module": "m", "inputs": {"x": constants}}}}
    workflow = loaded(document, {}).require()
    found = dict(workflow.tasks[0].inputs)["x"].value  # type: ignore[union-attr]
    assert found == constants
    assert [type(each) for each in found] == [type(each) for each in constants]


def test_numbers_that_json_cannot_carry_are_refused() -> None:
    for number in (float("nan"), float("inf"), float("-inf"), 2**80):
        document = {"name": "etl", "tasks": {"a": {"module": "m", "inputs": {"x": number}}}}
        assert [problem.code for problem in loaded(document, {}).problems] == ["ORK113"]


def test_a_source_that_is_no_python_still_has_lines() -> None:
    document = {"name": "etl", "tasks": {"a": {"command": "x | y"}}}
    report = ProblemReport("flow.py", "a (\n  b ]\n")
    found = load_tree(document_tree(document, "a (\n  b ]\n", 1, {"a": 2}), report, read=None)
    assert [(p.code, p.line, p.column) for p in found.problems] == [("ORK117", 2, 3)]

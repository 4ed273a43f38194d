"""Compiled workflows from outside: nothing is taken for one that our own compiler could not have written."""

from __future__ import annotations

from typing import Any

import pytest

from ork.compile.content import to_document
from ork.compile.load import load_workflow
from ork.compile.received import received_workflow
from ork.errors import DefinitionError

TEXT = b"name: flow\ntasks:\n  a: {command: 'true', retries: 2}\n  b: {command: 'true', depends_on: [a], timeout: 5}\n"


def document() -> dict[str, Any]:
    return to_document(load_workflow(TEXT, "flow.yaml", read=None).require())


def test_a_received_workflow_equals_the_compiled_one() -> None:
    assert to_document(received_workflow(document())) == document()


@pytest.mark.parametrize(
    "change",
    [
        {"tasks": []},
        {"name": "../x"},
        {"name": 7},
        {"fail_fast": False},  # the compiler leaves out what is so anyhow
        {"surprise": 1},
        {"budget": {"usd": "5"}},
        {"budget": {"usd": 0}},
        {"budget": {"usd": 5, "on_exceed": "alert"}},  # the default
        {"tasks": [{"name": "a"}]},
        {"tasks": "abc"},
        {"tasks": [document()["tasks"][0], document()["tasks"][0]]},
    ],
)
def test_a_document_of_another_shape_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(DefinitionError):
        received_workflow(document() | change)


@pytest.mark.parametrize(
    "change",
    [
        {"retries": "many"},
        {"retries": True},
        {"timeout": "soon"},
        {"timeout": -1},
        {"priority": 1.5},
        {"executor": ["process"]},
        {"pool": 4},
        {"depends_on": ["nobody"]},
        {"depends_on": ["b"]},
        {"depends_on": [3]},
        {"env": [[1, {"const": 1}]]},
        {"image": "x"},  # and yet for a process of this machine
        {"executor": "container"},
        {"executor": "process", "image": "x", "action": {"container": {}}},
        {"action": {"approval": {"message": "?"}}},
        {"action": {"workflow": {"name": "x"}}, "image": "x", "executor": "container"},
    ],
)
def test_a_task_with_an_invalid_value_is_rejected(change: dict[str, Any]) -> None:
    first, second = document()["tasks"]
    with pytest.raises(DefinitionError):
        received_workflow(document() | {"tasks": [first | change, second]})


@pytest.mark.parametrize("value", [None, [], "x", 3, {"name": "x"}])
def test_an_invalid_document_is_rejected(value: Any) -> None:
    with pytest.raises(DefinitionError):
        received_workflow(value)


@pytest.mark.slow
def test_a_chain_of_many_tasks_costs_no_more_than_its_length() -> None:
    task = document()["tasks"][0]
    tasks = [task | {"name": "t0"}]
    tasks += [task | {"name": f"t{number}", "depends_on": [f"t{number - 1}"]} for number in range(1, 30_000)]
    assert len(received_workflow(document() | {"tasks": tasks}).tasks) == 30_000

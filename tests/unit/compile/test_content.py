"""The document of a workflow: everything comes back, defaults are left out, equal content has an equal name."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ork.compile.content import content_hash, from_document, make_version, to_document
from ork.model.record import replaced
from ork.model.workflow import (
    Action,
    Budget,
    Catchup,
    Command,
    CompiledWorkflow,
    Const,
    OnUnreachable,
    Param,
    ParamType,
    PythonCall,
    Ref,
    RetryOn,
    RunIf,
    Schedule,
    Secret,
    TaskSpec,
    Value,
)

names = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,10}", fullmatch=True)
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=5), below, max_size=3),
    max_leaves=5,
)
values: st.SearchStrategy[Value] = (
    st.builds(Const, json_values)
    | st.builds(Secret, names)
    | st.builds(
        lambda name, steps: Ref(("tasks", name, "output", *steps)),
        names,
        st.lists(names | st.integers(0, 9), max_size=3),
    )
)
pairs = st.lists(st.tuples(names, values), max_size=3).map(tuple)
actions: st.SearchStrategy[Action] = st.builds(
    PythonCall, st.none() | names, st.none() | names, st.just("main") | names
) | st.builds(Command, st.lists(values, min_size=1, max_size=3).map(tuple))
seconds = st.none() | st.floats(0, 1e6)
tasks = st.builds(
    TaskSpec,
    names,
    names,
    actions,
    st.lists(names, max_size=3).map(tuple),
    pairs,
    pairs,
    st.integers(0, 10),
    seconds,
    st.frozensets(st.sampled_from(RetryOn)),
    seconds,
    st.none() | names,
    st.integers(-5, 5),
    st.sampled_from(RunIf),
)
tasks = st.builds(lambda task, way: replaced(task, on_unreachable=way), tasks, st.sampled_from(OnUnreachable))
workflows = st.builds(
    CompiledWorkflow,
    names,
    st.lists(tasks, max_size=4).map(tuple),
    st.none() | st.text(),
    st.lists(st.builds(Param, names, st.sampled_from(ParamType), st.booleans(), json_values), max_size=3).map(tuple),
    st.none() | st.builds(Schedule, st.just("0 2 * * *"), names, st.sampled_from(Catchup), st.booleans()),
    st.none() | st.integers(1, 5),
    st.booleans(),
    st.lists(names, max_size=2).map(tuple),
)

PLAIN = CompiledWorkflow("w", (TaskSpec("a", "process", Command((Const("x"),))),))


@given(workflows)
def test_a_workflow_round_trips_through_json(workflow: CompiledWorkflow) -> None:
    assert from_document(json.loads(json.dumps(to_document(workflow)))) == workflow


@given(workflows)
def test_an_equal_workflow_has_an_equal_hash(workflow: CompiledWorkflow) -> None:
    assert content_hash(from_document(to_document(workflow))) == content_hash(workflow)


def test_defaults_are_left_out_so_that_fields_added_later_change_no_hash() -> None:
    assert to_document(PLAIN) == {
        "name": "w",
        "tasks": [{"name": "a", "executor": "process", "action": {"command": [{"const": "x"}]}}],
    }


def test_the_hash_of_a_known_workflow_is_stable() -> None:
    assert content_hash(PLAIN) == "dbc677cc460ea2cd2fc351f69cb08a8c8bc9979468cebac2dc22f50ec72ffca3"
    assert make_version(PLAIN, "/srv/flows").id == "f858455d1b247db4"


@pytest.mark.parametrize("model", [TaskSpec, CompiledWorkflow, Param, Schedule, Budget])
def test_every_field_of_the_model_is_in_the_document(model: type) -> None:
    from ork.compile import content

    table = {
        TaskSpec: content._TASK,
        CompiledWorkflow: content._WORKFLOW,
        Param: content._PARAM,
        Schedule: content._SCHEDULE,
        Budget: content._BUDGET,
    }
    assert set(table[model]) == set(model.__match_args__)


def test_a_version_is_named_by_content_and_folder_alone() -> None:
    version = make_version(PLAIN, "/a", "w.yaml")
    assert (len(version.id), version.workflow, version.root, version.source) == (16, PLAIN, "/a", "w.yaml")
    assert make_version(PLAIN, "/a", "other.yaml").id == version.id
    assert make_version(PLAIN, "/b").id != version.id
    assert make_version(replaced(PLAIN, fail_fast=True), "/a").id != version.id

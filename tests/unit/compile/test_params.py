"""The params of a run: typed, complete, and every mistake named at once."""

from __future__ import annotations

from typing import Any

import pytest

from ork.compile.params import check_params, parse_param, parse_params
from ork.errors import UsageError
from ork.model.record import replaced
from ork.model.workflow import Command, CompiledWorkflow, Const, Param, ParamType, TaskSpec


def workflow_with(*params: Param) -> CompiledWorkflow:
    return CompiledWorkflow("w", (TaskSpec("a", "process", Command((Const("x"),))),), params=params)


@pytest.mark.parametrize(
    ("param_type", "text", "value"),
    [
        (ParamType.STR, "12", "12"),
        (ParamType.INT, "12", 12),
        (ParamType.FLOAT, "1", 1.0),
        (ParamType.BOOL, "true", True),
        (ParamType.BOOL, "No", False),
        (ParamType.DATE, "2026-01-31", "2026-01-31"),
        (ParamType.DATETIME, "2026-01-31T02:00:00Z", "2026-01-31T02:00:00+00:00"),
        (ParamType.ANY, '{"a": [1]}', {"a": [1]}),
        (ParamType.ANY, "plain text", "plain text"),
        (ParamType.ANY, "NaN", "NaN"),
    ],
)
def test_text_is_read_by_the_type_of_the_param(param_type: ParamType, text: str, value: Any) -> None:
    found = parse_param(Param("p", param_type), text)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("param_type", "text"),
    [
        (ParamType.INT, "1.5"),
        (ParamType.INT, "9" * 5000),
        (ParamType.FLOAT, "nan"),
        (ParamType.FLOAT, "inf"),
        (ParamType.FLOAT, "many"),
        (ParamType.BOOL, "maybe"),
        (ParamType.DATE, "yesterday"),
        (ParamType.DATE, "2026-02-30"),
        (ParamType.DATETIME, "noon"),
    ],
)
def test_text_that_does_not_fit_is_refused(param_type: ParamType, text: str) -> None:
    with pytest.raises(UsageError, match="param `p`") as refused:
        parse_param(Param("p", param_type), text)
    assert refused.value.code == "ORK403"


def test_defaults_are_filled_in() -> None:
    workflow = workflow_with(Param("a", ParamType.INT), Param("b", required=False, default=[1]))
    assert check_params(workflow, {"a": 3}) == {"a": 3, "b": [1]}
    assert parse_params(workflow, {"a": "3"}) == {"a": 3, "b": [1]}


def test_everything_that_is_wrong_is_named_at_once() -> None:
    workflow = workflow_with(Param("day", ParamType.DATE), Param("count", ParamType.INT))
    with pytest.raises(UsageError) as refused:
        check_params(workflow, {"dey": "x", "count": "many"})
    message = refused.value.message
    assert "there is no param `dey` (did you mean `day`?)" in message
    assert "param `day` is missing" in message
    assert "param `count`: `many` is not a whole number" in message
    assert refused.value.hint == "params: day (date), count (int)"


def test_a_workflow_without_params_takes_none() -> None:
    with pytest.raises(UsageError, match="takes no params"):
        check_params(workflow_with(), {"x": 1})


def test_null_is_valid_only_if_it_is_the_default() -> None:
    assert check_params(workflow_with(Param("a", ParamType.INT, required=False)), {"a": None}) == {"a": None}
    with pytest.raises(UsageError):
        check_params(workflow_with(Param("a", ParamType.INT)), {"a": None})


def test_true_is_no_number() -> None:
    with pytest.raises(UsageError):
        check_params(workflow_with(Param("a", ParamType.INT)), {"a": True})


def test_all_wrong_params_are_reported_at_once() -> None:
    workflow = CompiledWorkflow(
        "w", (), params=(Param("count", ParamType.INT), Param("day", ParamType.DATE), Param("x"))
    )
    with pytest.raises(UsageError) as wrong:
        parse_params(workflow, {"count": "many", "day": "tomorrow", "z": "1"})
    for part in ("`count`", "`day`", "`z`", "`x` is missing"):
        assert part in wrong.value.message


def test_params_of_an_earlier_run_are_kept_where_no_others_are_given() -> None:
    workflow = CompiledWorkflow(
        "w", (), params=(Param("count", ParamType.INT), Param("names", required=False, default=[]))
    )
    kept = {"count": 3, "names": ["a"]}
    assert parse_params(workflow, {"count": "4"}, kept) == {"count": 4, "names": ["a"]}
    assert parse_params(workflow, {}, kept) == kept


@pytest.mark.parametrize(
    ("param_type", "text", "value"),
    [
        ("list[str]", '["a"]', ["a"]),
        ("str?", "12", "12"),
        ("str?", "null", None),
        ("int | str", "12", 12),
        ("dict[str, float]", '{"a": 1}', {"a": 1}),
        ("Row", '{"id": 1}', {"id": 1}),
        ("list[date]?", '["2026-01-31"]', ["2026-01-31"]),
    ],
)
def test_text_for_a_richer_type_is_json_or_text_whichever_fits(param_type: str, text: str, value: Any) -> None:
    workflow = replaced(workflow_with(Param("p", param_type)), types=(("Row", {"object": {"id": "int"}}),))
    assert parse_params(workflow, {"p": text}) == {"p": value}


def test_a_value_that_does_not_fit_a_richer_type_is_told_with_its_place() -> None:
    workflow = workflow_with(Param("ids", "list[int]"))
    with pytest.raises(UsageError, match=r"is not list\[int\], written as JSON \(\[1\]: expected int, got \"x\"\)"):
        parse_params(workflow, {"ids": '[1, "x"]'})
    with pytest.raises(UsageError, match=r"is not list\[int\] \(\[0\]: expected int, got null\)"):
        check_params(workflow, {"ids": [None]})


def test_a_missing_param_similar_to_a_task_suggests_the_task() -> None:
    flow = replaced(workflow_with(Param("extrct")), tasks=(TaskSpec("extract", "process", Command((Const("x"),))),))
    with pytest.raises(UsageError, match="if the output of task `extract` was meant"):
        check_params(flow, {})

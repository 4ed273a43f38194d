"""The type language: what can be written, and which values are of which type."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ork.model.type_text import TypeTextError, parse_type
from ork.model.types import SCALARS, check, render_type, union_of

field_names = st.sampled_from(["a", "b", "with space", "x.y"])


def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    objects = st.dictionaries(field_names, inner, max_size=3)
    return st.one_of(
        st.builds(lambda kind: {"list": kind}, inner),
        st.builds(lambda kind: {"dict": kind}, inner),
        st.lists(inner, min_size=1, max_size=3).map(union_of),
        objects.map(lambda fields: {"object": fields}),
        objects.filter(bool).map(lambda fields: {"object": fields, "optional": [next(iter(fields))]}),
    )


literals = st.lists(st.one_of(st.text(max_size=5), st.integers(-99, 99)), min_size=1, max_size=3, unique_by=repr)
any_type = st.recursive(
    st.one_of(st.sampled_from([*SCALARS, "Order"]), literals.map(lambda v: {"enum": v})), containers
)


@given(any_type)
def test_a_type_written_as_text_is_read_as_the_same_type(kind: Any) -> None:
    assert parse_type(render_type(kind)) == kind


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("int", "int"),
        ("list", {"list": "any"}),
        ("list[ int ]", {"list": "int"}),
        ("dict[str, list[float?]]", {"dict": {"list": {"union": ["float", "none"]}}}),
        ("none | int", {"union": ["int", "none"]}),
        ("int | (str | int)", {"union": ["int", "str"]}),
        ("any?", "any"),
        ('"b" | "a"', {"enum": ["b", "a"]}),
        (
            '{id: int, note?: str, "a b": Order}',
            {"object": {"id": "int", "note": "str", "a b": "Order"}, "optional": ["note"]},
        ),
    ],
)
def test_text_is_read_as_a_type_in_its_one_form(text: str, kind: Any) -> None:
    assert parse_type(text) == kind


@pytest.mark.parametrize(
    ("text", "start", "width"),
    [
        ("", 0, 1),
        ("lst", 0, 3),
        ("list[strng]", 5, 5),
        ("list[int", 7, 1),
        ("int int", 4, 3),
        ("dict[int, str]", 5, 3),
        ("{a int}", 3, 3),
        ("{a: int, a: int}", 10, 1),
        ("int | $", 6, 1),
        ("x" * 5000, 0, 1),
        ("list[" * 500, 125, 1),
    ],
)
def test_a_mistake_is_reported_with_its_position(text: str, start: int, width: int) -> None:
    with pytest.raises(TypeTextError) as caught:
        parse_type(text, ())
    assert (caught.value.start, caught.value.width) == (start, width)


@given(st.text(alphabet='intsr[]{}|?:, "1', max_size=30))
def test_arbitrary_text_raises_only_type_errors(text: str) -> None:
    with suppress(TypeTextError):
        assert parse_type(render_type(parse_type(text, ()))) == parse_type(text, ())


NAMES = {"Tree": {"object": {"value": "int", "left": "Tree", "right": "Tree"}, "optional": ["left", "right"]}}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("str", "x"),
        ("int", 3),
        ("int", 3.0),
        ("float", 3),
        ("bool", False),
        ("date", "2026-01-31"),
        ("datetime", "2026-01-31T02:00:00Z"),
        ("datetime", "2026-01-31"),
        ("none", None),
        ("any", [{"a": None}]),
        ("int?", None),
        ("list[int]", []),
        ("dict[str, int]", {"a": 1}),
        ('"a" | 1', 1),
        ("{id: int, note?: str}", {"id": 1, "more": True}),
        ("Tree", {"value": 1, "left": {"value": 2, "right": {"value": 3}}}),
    ],
)
def test_a_value_of_the_type_is_accepted(text: str, value: Any) -> None:
    assert check(value, parse_type(text), NAMES) is None


@pytest.mark.parametrize(
    ("text", "value", "sentence"),
    [
        ("int", "1", 'expected int, got "1"'),
        ("int", True, "expected int, got true"),
        ("int", 1.5, "expected int, got 1.5"),
        ("float", True, "expected float, got true"),
        ("str", 1, "expected str, got 1"),
        ("date", "2026-02-30", 'expected date, got "2026-02-30"'),
        ("date", "2026-01-31T02:00:00Z", 'expected date, got "2026-01-31T02:00:00Z"'),
        ("datetime", 5, "expected datetime, got 5"),
        ("none", 0, "expected none, got 0"),
        ("list[int]", [1, "x"], '[1]: expected int, got "x"'),
        ("list[int]", {}, "expected list[int], got {}"),
        ("dict[str, int]", {"a": None}, ".a: expected int, got null"),
        ('"a" | 1', True, 'expected "a" | 1, got true'),
        ("int | str", 1.5, "expected int | str, got 1.5"),
        ("list[{rows: list[{qty: int}]}]", [{"rows": [{"qty": "x"}]}], '[0].rows[0].qty: expected int, got "x"'),
        ("{id: int}?", {"id": "x"}, '.id: expected int, got "x"'),
        ("{id: int}", {}, ".id is missing"),
        ("Tree", {"value": 1, "left": {}}, ".left.value is missing"),
    ],
)
def test_a_value_of_another_type_is_rejected_with_its_path(text: str, value: Any, sentence: str) -> None:
    mismatch = check(value, parse_type(text), NAMES)
    assert mismatch is not None
    assert mismatch.of_value() == sentence


def test_a_closed_object_rejects_unknown_fields() -> None:
    mismatch = check({"id": 1, "x": 2}, {"object": {"id": "int"}, "closed": True})
    assert mismatch is not None
    assert mismatch.of_value() == ".x is one field too many"


def test_a_long_value_is_shown_in_short() -> None:
    mismatch = check("x" * 1000, "int")
    assert mismatch is not None
    assert len(mismatch.actual) == 60


@given(
    any_type,
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda v: st.lists(v) | st.dictionaries(st.text(), v)
    ),
)
def test_every_value_is_either_accepted_or_refused_with_a_reason(kind: Any, value: Any) -> None:
    mismatch = check(value, kind, {"Order": {"object": {"id": "int"}}})
    assert mismatch is None or mismatch.of_value()

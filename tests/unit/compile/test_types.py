"""Which types fit which, and what a path leads to."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ork.compile.types import Typed, assignable, type_at
from ork.model.type_text import parse_type
from ork.model.types import Mismatch, check

NAMES: dict[str, Any] = {
    "Order": {"object": {"id": "int", "note": "str"}, "optional": ["note"]},
    "Tree": {"object": {"value": "int", "below": {"list": "Tree"}}},
    "Bush": {"object": {"value": "float", "below": {"list": "Bush"}}},
    "Weed": {"object": {"value": "str", "below": {"list": "Weed"}}},
}


def typed(text: str) -> Typed:
    return Typed(parse_type(text), NAMES)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("int", "int"),
        ("int", "float"),
        ("any", "int"),
        ("int", "any"),
        ("date", "str"),
        ("date", "datetime"),
        ("datetime", "str"),
        ("int", "int?"),
        ("int | str", "str | int | none"),
        ('"a" | "b"', "str"),
        ('"a"', '"a" | "b"'),
        ("list[int]", "list[float]"),
        ("list[int]", "list"),
        ("{a: int, b: str}", "{a: float}"),
        ("{a: int}", "{a: int, b?: str}"),
        ("{a: int}", "dict[str, float]"),
        ("dict[str, int]", "{a: int}"),
        ("Order", "{id: int}"),
        ("Tree", "Tree"),
        ("Tree", "Bush"),
        ("none", "int?"),
    ],
)
def test_assignable_types_are_accepted(source: str, target: str) -> None:
    assert assignable(typed(source), typed(target)) is None


@pytest.mark.parametrize(
    ("source", "target", "sentence"),
    [
        ("str", "int", "str is not int"),
        ("float", "int", "float is not int"),
        ("bool", "int", "bool is not int"),
        ("str", "date", "str is not date"),
        ("datetime", "date", "datetime is not date"),
        ("int?", "int", "none is not int"),
        ("none", "int", "none is not int"),
        ("int | str", "int", "str is not int"),
        ("str", '"a" | "b"', 'str is not "a" | "b"'),
        ('"a" | "c"', '"a" | "b"', '"a" | "c" is not "a" | "b"'),
        ("int", "list[int]", "int is not list[int]"),
        ("{rows: list[{qty: str}]}", "{rows: list[{qty: int}]}", ".rows[].qty: str is not int"),
        ("{a: int}", "{a: int, b: str}", ".b is missing"),
        ("{a?: int}", "{a: int}", ".a is missing"),
        ("{a: int, b: str}", "dict[str, int]", ".b: str is not int"),
        ("dict[str, str]", "{a: int}", ".a: str is not int"),
        ("dict[str, str]", "dict[str, int]", ".*: str is not int"),
        ("list[Order]", "list[{id: str}]", "[].id: int is not str"),
        ("list[Order]", "list[str]", "[]: Order is not str"),
        ("Tree", "Weed", ".value: int is not str"),
    ],
)
def test_a_type_mismatch_names_the_field(source: str, target: str, sentence: str) -> None:
    mismatch = assignable(typed(source), typed(target))
    assert mismatch is not None
    assert mismatch.of_types() == sentence


def test_a_closed_object_refuses_a_field_it_does_not_have() -> None:
    mismatch = assignable(typed("{a: int, b: str}"), Typed({"object": {"a": "int"}, "closed": True}, {}))
    assert mismatch is not None
    assert mismatch.of_types() == ".b is one field too many"


def test_a_type_may_accept_more_than_it_gives() -> None:
    decimal = Typed({"takes": {"union": ["str", "int"]}, "gives": "str"}, {})
    assert assignable(typed("int"), decimal) is None
    assert assignable(decimal, typed("str")) is None
    assert assignable(decimal, typed("int")) is not None
    assert assignable(decimal, decimal) is None


def test_two_files_may_use_one_name_for_different_types() -> None:
    here, there = Typed("Row", {"Row": {"object": {"a": "int"}}}), Typed("Row", {"Row": {"object": {"b": "int"}}})
    assert assignable(here, here) is None
    assert assignable(here, there) is not None


def test_a_failed_union_member_is_not_cached_as_assignable() -> None:
    target = {"object": {"x": {"union": [{"object": {"id": "str"}}, "int", "Order"]}, "y": {"object": {"id": "str"}}}}
    mismatch = assignable(typed("{x: Order, y: Order}"), Typed(target, NAMES))
    assert mismatch is not None
    assert mismatch.of_types() == ".y.id: int is not str"


@pytest.mark.parametrize(
    ("source", "path", "found"),
    [
        ("{a: {b: int}}", ("a", "b"), "int"),
        ("list[str]", (0,), "str"),
        ("dict[str, int]", ("anything",), "int"),
        ("any", ("a", 0, "b"), "any"),
        ("Order?", ("id",), "int"),
        ("{a: int} | {a: str}", ("a",), {"union": ["int", "str"]}),
        ("Tree", ("below", 3, "value"), "int"),
    ],
)
def test_a_path_leads_to_the_type_of_what_is_there(source: str, path: tuple[str | int, ...], found: Any) -> None:
    there = type_at(typed(source), path)
    assert isinstance(there, Typed)
    assert there.type == found


@pytest.mark.parametrize(
    ("source", "path", "place"),
    [
        ("{a: int}", ("b",), ".b"),
        ("{a: int}", ("a", "b"), ".a.b"),
        ("list[int]", ("a",), ".a"),
        ("int", (0,), "[0]"),
        ("{a: int}", (0,), "[0]"),
        ("{a: int} | {b: int}", ("a",), ".a"),
    ],
)
def test_a_missing_path_is_reported_with_its_position(source: str, path: tuple[str | int, ...], place: str) -> None:
    there = type_at(typed(source), path)
    assert isinstance(there, Mismatch)
    assert there.path == place


values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.just("2026-01-31") | st.just("a"),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2),
    max_leaves=4,
)
samples = st.sampled_from(
    [
        *("int", "float", "str", "date", "datetime", "bool", "none", "int?", '"a"', "int | str"),
        *("list[int]", "list[float?]", "{a: int}", "{a: int, b?: str}", "{a: float?}", "dict[str, int]"),
        *("list[{a: int}]", "list[dict[str, float]]"),
    ]
)


@given(samples, samples, values)
def test_a_value_of_a_type_matches_every_assignable_type(source: str, target: str, value: Any) -> None:
    """Except for what shows only when there is a value: whether a dict has the fields of an object, and what the fields hold
    that the source type does not name."""
    if "dict" in source and "{" in target:
        return
    if assignable(typed(source), typed(target)) is None and check(value, without_more(parse_type(source))) is None:
        assert check(value, parse_type(target)) is None


def without_more(kind: Any) -> Any:
    """The same type, whose objects have no fields but those that are named."""
    if isinstance(kind, str):
        return kind
    inner: dict[str, Any] = {name: without_more(kind[name]) for name in ("list", "dict") if name in kind}
    if "object" in kind:
        inner["object"] = {name: without_more(field) for name, field in kind["object"].items()}
        inner["closed"] = True
    return {**kind, **inner}


def test_a_field_that_the_source_does_not_name_is_checked_when_there_is_a_value() -> None:
    assert assignable(typed("{a: int}"), typed("{a: int, b?: str}")) is None
    assert check({"a": 0, "b": None}, parse_type("{a: int}")) is None
    assert check({"a": 0, "b": None}, parse_type("{a: int, b?: str}")) is not None

"""Annotations as types: as generous as the conversion into them, as exact as what comes back out."""

from __future__ import annotations

import collections.abc as abc
import enum
import functools
from collections.abc import Awaitable
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, NewType, NotRequired, Optional, TypedDict, TypeVar
from uuid import UUID

import pydantic
import pytest

from ork.compile.types import Typed, assignable
from ork.model.type_text import parse_type
from ork.model.types import check
from ork.sdk.context import Context
from ork.worker.call.results import to_plain
from ork.worker.convert.annotations import describe, describe_function, type_text
from ork.worker.convert.scalars import ConversionError
from ork.worker.convert.values import convert


class Status(enum.Enum):
    PAID = "paid"
    OPEN = "open"


class Odd(enum.Enum):
    A = (1, 2)


@dataclass
class Order:
    id: UUID
    placed_on: date
    status: Status
    note: str = ""
    tags: list[str] = field(default_factory=list)


@dataclass
class Tree:
    value: int
    below: list[Tree]


class Point(NamedTuple):
    x: int
    y: int = 0


class Row(TypedDict):
    id: int
    note: NotRequired[str]


class Loose(TypedDict, total=False):
    id: int


class Model(pydantic.BaseModel):
    id: int
    when: datetime | None = None


class Ruled(pydantic.BaseModel):
    id: int

    @pydantic.field_validator("id", mode="before")
    @classmethod
    def from_text(cls, value: Any) -> Any:
        return int(str(value), 16)


class Aliased(pydantic.BaseModel):
    id: int = pydantic.Field(alias="ID")


UserId = NewType("UserId", int)
T = TypeVar("T")


class Opaque:
    pass


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        (str, "str"),
        (int, "int"),
        (float, "float"),
        (bool, "bool"),
        (None, "none"),
        (type(None), "none"),
        (Any, "any"),
        (object, "any"),
        (list, "list"),
        (dict, "dict"),
        (list[int], "list[int]"),
        (set[int], "list[int]"),
        (tuple[int, ...], "list[int]"),
        (tuple[int, int], "list[int]"),
        (tuple[int, str], "list"),
        (abc.Sequence[str], "list[str]"),
        (dict[str, int], "dict[str, int]"),
        (abc.Mapping[Status, int], "dict[str, int]"),
        (int | None, "int?"),
        (Optional[int], "int?"),  # noqa: UP045
        (int | str, "int | str"),
        (Literal["a", 1, None], '"a" | 1 | none'),
        (Status, '"paid" | "open"'),
        (Odd, "any"),
        (Annotated[int, "positive"], "int"),
        (UserId, "int"),
        (T, "any"),
        (date, "date"),
        (datetime, "datetime"),
        (time, "str"),
        (timedelta, "float"),
        (UUID, "str"),
        (Path, "str"),
        (Opaque, "any"),
        ("Unresolved", "any"),
        (Ruled, "any"),
        (Aliased, "any"),
    ],
)
def test_an_annotation_is_described_as_a_type(annotation: Any, text: str) -> None:
    named: dict[str, Any] = {}
    found = describe(annotation, named)
    assert (named.get(found, found) if isinstance(found, str) else found) == parse_type(text)


PLAIN_ORDER = {"id": str(UUID(int=1)), "placed_on": "2026-01-31", "status": "paid"}


@pytest.mark.parametrize(
    ("annotation", "value", "fits"),
    [
        (Order, PLAIN_ORDER, True),
        (Order, {**PLAIN_ORDER, "note": "x", "tags": ["a"]}, True),
        (Order, {**PLAIN_ORDER, "note": 1}, False),
        (Order, {**PLAIN_ORDER, "more": 1}, False),
        (Order, {**PLAIN_ORDER, "status": "lost"}, False),
        (Order, {"id": "x"}, False),
        (Tree, {"value": 1, "below": [{"value": 2, "below": []}]}, True),
        (Tree, {"value": 1, "below": [{"value": "2", "below": []}]}, False),
        (Point, {"x": 1}, True),
        (Point, [1, 2], True),
        (Point, {"x": 1, "z": 2}, False),
        (Row, {"id": 1}, True),
        (Row, {"id": 1, "more": 1}, True),
        (Row, {"note": "x"}, False),
        (Loose, {}, True),
        (Model, {"id": "12"}, True),
        (Model, {}, False),
        (Ruled, {"id": "ff"}, True),
        (Aliased, {"ID": 1}, True),
        (Decimal, 1.5, True),
        (Decimal, "1.5", True),
        (Decimal, [], False),
        (timedelta, 3, True),
        (dict[int, int], {"1": 2}, True),
        (list[Order | None], [None, PLAIN_ORDER], True),
    ],
)
def test_a_type_takes_exactly_what_the_conversion_takes(annotation: Any, value: Any, fits: bool) -> None:
    named: dict[str, Any] = {}
    assert (check(value, describe(annotation, named), named) is None) == fits
    if fits:
        convert(value, annotation)
    else:
        with pytest.raises(ConversionError):
            convert(value, annotation)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (Order, Order(UUID(int=1), date(2026, 1, 31), Status.OPEN)),
        (Tree, Tree(1, [Tree(2, [])])),
        (Point, Point(1)),
        (Row, {"id": 1}),
        (Model, Model(id=1)),
        (Model, Model(id=1, when=datetime(2026, 1, 31))),
        (Decimal, Decimal("1.5")),
        (timedelta, timedelta(seconds=5)),
        (dict[Status, Order | None], {Status.OPEN: None}),
    ],
)
def test_what_a_function_returns_is_of_its_type_and_fits_where_the_type_is_asked_for(
    annotation: Any, value: Any
) -> None:
    named: dict[str, Any] = {}
    typed = Typed(describe(annotation, named), named)
    assert check(to_plain(value, ""), typed.type, named) is None
    assert assignable(typed, typed) is None


def test_defaults_may_be_left_out_on_the_way_in_and_are_there_on_the_way_out() -> None:
    named: dict[str, Any] = {}
    order = Typed(describe(Order, named), named)
    assert assignable(order, Typed(parse_type("{note: str, tags: list[str]}"), {})) is None
    assert assignable(Typed(parse_type("{x: int}"), {}), Typed(describe(Point, named), named)) is None
    assert assignable(Typed(parse_type("{y: int}"), {}), Typed(describe(Point, named), named)) is not None


def test_two_classes_of_one_name_stay_apart() -> None:
    first = NamedTuple("Same", [("a", int)])  # noqa: UP014
    second = NamedTuple("Same", [("b", int)])  # noqa: UP014
    named: dict[str, Any] = {}
    assert describe(dict[str, first] | list[second], named) == {"union": [{"dict": "Same"}, {"list": "Same_2"}]}  # type: ignore[valid-type]
    assert set(named) == {"Same", "Same_2"}


def whole(
    day: date,
    /,
    rows: list[Order],
    ctx: Any,
    *rest: int,
    limit: int = 3,
    since: date = None,  # type: ignore[assignment]  # noqa: RUF013
    **more: Any,
) -> Row:
    raise AssertionError


def test_a_function_is_described_with_its_parameters_and_what_it_returns() -> None:
    described = describe_function(whole)
    rows = [(each["name"], each["kind"], each["required"], each["type"]) for each in described["parameters"]]
    assert rows == [
        ("day", "positional_only", True, "date"),
        ("rows", "named", True, {"list": "Order"}),
        ("ctx", "context", False, None),
        ("rest", "any_positional", False, "int"),
        ("limit", "named", False, "int"),
        ("since", "named", False, {"union": ["date", "none"]}),
        ("more", "any_named", False, "any"),
    ]
    assert described["returns"] == "Row"
    assert set(described["types"]) == {"Order", "Row"}
    assert described["line"] == whole.__code__.co_firstlineno


def test_what_is_not_annotated_has_no_type() -> None:
    def bare(a, b=1): ...  # type: ignore[no-untyped-def]

    described = describe_function(bare)
    assert [each["type"] for each in described["parameters"]] == [None, None]
    assert described["returns"] is None


def test_a_context_by_any_name_is_no_parameter() -> None:
    def function(context: Context, other: Context | None = None) -> None: ...

    assert [each["kind"] for each in describe_function(function)["parameters"]] == ["context", "context"]


def test_an_async_function_returns_what_is_awaited() -> None:
    async def later() -> int:
        return 1

    def handed() -> Awaitable[int]:
        return later()

    assert describe_function(later)["returns"] == "int"
    assert describe_function(handed)["returns"] == "int"


def test_a_decorated_function_is_described_as_what_it_wraps() -> None:
    @functools.wraps(whole)
    def wrapper(*args: Any, **named: Any) -> Any: ...

    assert describe_function(wrapper) == describe_function(whole)


def test_a_callable_nobody_can_look_into_takes_anything() -> None:
    assert [each["kind"] for each in describe_function(dict.fromkeys)["parameters"]][-1:] != ["context"]
    assert describe_function(type)["parameters"] == [
        {"name": "kwargs", "kind": "any_named", "required": False, "type": None}
    ]


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        (date, "date"),
        (list[int] | None, "list[int]?"),
        (Point, "{x: int, y?: int} | list[any]"),
        (Tree, "{value: int, below: list[any]}"),
        (Decimal, "str | int | float"),
        (Row, "{id: int, note?: str}"),
    ],
)
def test_an_annotation_can_be_written_in_the_definition_language(annotation: Any, text: str) -> None:
    assert type_text(annotation) == text
    parse_type(type_text(annotation), ())

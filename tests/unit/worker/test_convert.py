from __future__ import annotations

import typing
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, NewType, NotRequired, Protocol, TypedDict
from uuid import UUID

import pytest

from ork.worker.convert.scalars import ConversionError
from ork.worker.convert.values import convert, resolve_annotation


class Colour(Enum):
    RED = "red"


class Level(IntEnum):
    HIGH = 3


class Mode(StrEnum):
    FAST = "fast"


class Point(NamedTuple):
    x: int
    y: int = 0


class Movie(TypedDict):
    title: str
    released: NotRequired[date]


@dataclass
class Item:
    name: str
    price: Decimal
    tags: list[str] = field(default_factory=list)
    made: date | None = None
    SHARED: ClassVar[int] = 1


@dataclass
class Basket:
    items: dict[str, Item]
    total: float = 0


class Readable(Protocol):
    def read(self) -> str: ...


class Plain:
    pass


UserId = NewType("UserId", int)
IDENTITY = "123e4567-e89b-12d3-a456-426614174000"


@pytest.mark.parametrize(
    ("value", "annotation", "expected"),
    [
        (1, int, 1),
        (2.0, int, 2),
        (1, float, 1.0),
        ("a", str, "a"),
        (True, bool, True),
        (None, None, None),
        (None, type(None), None),
        ({"a": 1}, dict, {"a": 1}),
        ([1], list, [1]),
        ([1, 2], tuple, (1, 2)),
        ({"any": []}, Any, {"any": []}),
        (5, object, 5),
        (["1", "2"], list[str], ["1", "2"]),
        (["2026-01-31"], Sequence[date], [date(2026, 1, 31)]),
        ([1, "a"], tuple[int, str], (1, "a")),
        ([1, 2], tuple[int, ...], (1, 2)),
        ([1, 1, 2], set[int], {1, 2}),
        ([1], frozenset[int], frozenset({1})),
        ({"1": "2026-01-31"}, dict[int, date], {1: date(2026, 1, 31)}),
        ({"a": 1}, Mapping[str, int], {"a": 1}),
        (None, date | None, None),
        ("2026-01-31", typing.Optional[date], date(2026, 1, 31)),  # noqa: UP045
        ("x", int | str, "x"),
        (1, float | int, 1),
        ("2026-01-31", date | str, date(2026, 1, 31)),
        ("not a date", date | str, "not a date"),
        ("a", Literal["a", "b"], "a"),
        (1, Annotated[int, "metres"], 1),
        (7, UserId, 7),
        ("red", Colour, Colour.RED),
        (3, Level, Level.HIGH),
        ("fast", Mode, Mode.FAST),
        ("2026-01-31T12:00:00Z", datetime, datetime(2026, 1, 31, 12, tzinfo=UTC)),
        ("12:30:00", time, time(12, 30)),
        (90, timedelta, timedelta(seconds=90)),
        ("1.10", Decimal, Decimal("1.10")),
        (3, Decimal, Decimal(3)),
        (IDENTITY, UUID, UUID(IDENTITY)),
        ("a/b", Path, Path("a/b")),
        ("a/b", PurePosixPath, PurePosixPath("a/b")),
        ({"x": 1}, Point, Point(1)),
        ([1, 2], Point, Point(1, 2)),
        ({"title": "M", "released": "2026-01-31"}, Movie, {"title": "M", "released": date(2026, 1, 31)}),
        ({"title": "M"}, Movie, {"title": "M"}),
    ],
)
def test_values_become_what_was_annotated(value: Any, annotation: Any, expected: Any) -> None:
    converted = convert(value, annotation)
    assert converted == expected
    assert type(converted) is type(expected)


def test_dataclasses_are_made_to_any_depth() -> None:
    value = {"items": {"a": {"name": "n", "price": "1.5", "made": "2026-01-31"}}}
    assert convert(value, Basket) == Basket({"a": Item("n", Decimal("1.5"), [], date(2026, 1, 31))})


@pytest.mark.parametrize(
    ("value", "annotation", "message"),
    [
        ("1", int, ': expected a whole number, got "1"'),
        (True, int, ": expected a whole number, got true"),
        (1.5, int, ": expected a whole number, got 1.5"),
        (1, str, ": expected text, got 1"),
        (1, bool, ": expected true or false, got 1"),
        ("x", float, ': expected a number, got "x"'),
        ([1, "x"], list[int], '[1]: expected a whole number, got "x"'),
        ({"a": [None]}, dict[str, list[int]], ".a[0]: expected a whole number, got null"),
        ("x", list[int], ': expected a list, got "x"'),
        ([1], tuple[int, int], ": expected a list of 2, got [1]"),
        ({"x": 1}, dict[int, int], ': expected a whole number as key, got "x"'),
        ("c", Literal["a", "b"], ": expected one of 'a', 'b', got \"c\""),
        ("blue", Colour, ": expected one of 'red', got \"blue\""),
        ("31.1.2026", date, ': expected a date such as 2026-01-31, got "31.1.2026"'),
        ("many", Decimal, ': expected a Decimal such as "1.25", got "many"'),
        ("text", bytes, ': expected bytes, which JSON cannot carry: return bytes, or text, got "text"'),
        ({}, Plain, ": expected Plain, which cannot be made from JSON"),
        ({"title": 1}, Movie, ".title: expected text, got 1"),
        ({}, Movie, ": Movie lacks title"),
        ({"z": 1}, Point, ": Point has no field z"),
        ([1, 2, 3], Point, ": expected an object or list for Point, got [1,2,3]"),
        ({"name": "n", "price": "1", "colour": 1}, Item, ": Item has no field colour"),
        ([], int | date, ": expected int or date, got []"),
        ("x", int | None, ': expected a whole number, got "x"'),
    ],
)
def test_a_wrong_value_is_told_with_its_place(value: Any, annotation: Any, message: str) -> None:
    with pytest.raises(ConversionError) as caught:
        convert(value, annotation)
    assert str(caught.value) == message


def test_a_missing_field_is_told() -> None:
    with pytest.raises(ConversionError, match=r"Item: .*missing.*'price'"):
        convert({"name": "n"}, Item)


def test_long_values_are_shortened() -> None:
    with pytest.raises(ConversionError) as caught:
        convert("x" * 1000, int)
    assert len(str(caught.value)) < 120


def test_protocols_and_instances_pass_as_they_are() -> None:
    assert convert({"a": 1}, Readable) == {"a": 1}
    ordered = OrderedDict(a=1)
    assert convert(ordered, OrderedDict) is ordered


def test_models_that_validate_themselves_are_asked() -> None:
    class Model:
        def __init__(self, data: Any) -> None:
            self.data = data

        @classmethod
        def model_validate(cls, data: Any) -> Model:
            if data != {"ok": 1}:
                raise ValueError("1 validation error")
            return cls(data)

    assert convert({"ok": 1}, Model).data == {"ok": 1}
    with pytest.raises(ConversionError, match="1 validation error"):
        convert({}, Model)


def test_annotations_in_quotes_are_looked_up_where_they_were_written() -> None:
    def function() -> None: ...

    assert resolve_annotation("list[date]", function) == list[date]
    assert resolve_annotation(list["Item"], function) == list[Item]
    assert resolve_annotation("only_for_type_checkers.Thing", function) is None

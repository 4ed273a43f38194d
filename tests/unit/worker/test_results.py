from __future__ import annotations

import json
import re
from collections import OrderedDict, defaultdict, namedtuple
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from ork.worker.call.results import result_text
from ork.worker.data.errors import ResultError

LIMIT = 1 << 20
IDENTITY = "123e4567-e89b-12d3-a456-426614174000"
Pair = namedtuple("Pair", "left right")


class Colour(Enum):
    RED = "red"


class Level(IntEnum):
    HIGH = 3


class Text(str):
    pass


@dataclass
class Row:
    day: date
    parts: list[Path]


class Model:
    def model_dump(self, *, mode: str) -> dict[str, Any]:
        return {"mode": mode}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, 0),
        (False, False),
        ("é\n", "é\n"),
        (Text("x"), "x"),
        ((1, (2,)), [1, [2]]),
        (OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
        (defaultdict(list, a=[1]), {"a": [1]}),
        ({1: "a", date(2026, 1, 31): "b", Colour.RED: "c"}, {"1": "a", "2026-01-31": "b", "red": "c"}),
        (Pair(1, [2]), {"left": 1, "right": [2]}),
        (Colour.RED, "red"),
        (Level.HIGH, 3),
        (date(2026, 1, 31), "2026-01-31"),
        (datetime(2026, 1, 31, 12, tzinfo=UTC), "2026-01-31T12:00:00+00:00"),
        (time(12, 30), "12:30:00"),
        (timedelta(minutes=1.5), 90.0),
        (Decimal("1.10"), "1.10"),
        (Path("a/b"), "a/b"),
        (UUID(IDENTITY), IDENTITY),
        (Row(date(2026, 1, 31), [Path("x")]), {"day": "2026-01-31", "parts": ["x"]}),
        (Model(), {"mode": "json"}),
    ],
)
def test_results_have_one_obvious_json(value: Any, expected: Any) -> None:
    text = result_text(value, LIMIT)
    assert text is not None
    assert json.loads(text) == expected


def test_returning_nothing_is_no_output() -> None:
    assert result_text(None, LIMIT) is None
    assert result_text([None], LIMIT) == "[null]"


def test_keys_keep_their_order() -> None:
    assert result_text({"b": 1, "a": 2}, LIMIT) == '{"b":1,"a":2}'


def itself() -> list[Any]:
    endless: list[Any] = []
    endless.append(endless)
    return endless


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"rows": [1, 2, 3, {4}]}, "returned set[…] at .rows[3]: cannot be stored as JSON: return a sorted list"),
        (b"x", "returned bytes: cannot be stored as JSON: return text"),
        ({"a": float("nan")}, "returned nan at .a: cannot be stored as JSON"),
        ([float("-inf")], "returned -inf at [0]: cannot be stored as JSON"),
        ((n for n in [1]), "returned generator: cannot be stored as JSON: return a list"),
        ({"a": object()}, "returned object at .a: cannot be stored as JSON"),
        ({(1, 2): 3}, "returned a key of type tuple: keys must be text"),
        ({None: 3}, "returned a key of type NoneType: keys must be text"),
        ({1: 1, "1": 2}, "returned the key '1' twice"),
        ({"a": "\0"}, "returned text with a NUL character at .a: cannot be stored as JSON"),
        ("\ud800", "returned text that is not valid Unicode: cannot be stored"),
        (10**400, "returned an integer of more than 400 digits"),
        (itself(), "returned data nested deeper than 64 levels (or containing itself)"),
        (Row, "returned type: cannot be stored as JSON"),
    ],
)
def test_what_json_cannot_say_is_refused_with_its_place(value: Any, message: str) -> None:
    with pytest.raises(ResultError) as caught:
        result_text(value, LIMIT)
    assert str(caught.value) == message


def test_what_is_stored_is_readable_by_the_strict_reader() -> None:
    from ork.objects.json_text import strict_json

    deepest: list[Any] = []
    for _ in range(63):
        deepest = [deepest]
    text = result_text(deepest, LIMIT)
    assert text is not None
    assert strict_json(text.encode(), max_size=LIMIT) == deepest
    with pytest.raises(ResultError):
        result_text([deepest], LIMIT)


def test_a_result_larger_than_the_limit_is_refused() -> None:
    with pytest.raises(ResultError, match="more than the 10 allowed"):
        result_text("x" * 20, 10)


def of_library(name: str, **attributes: Any) -> Any:
    """A value whose type says that it is of a library that need not be installed here."""
    module, _, kind = name.rpartition(".")
    return type(kind, (), {"__module__": module, **attributes})()


@pytest.mark.parametrize(
    ("value", "step"),
    [
        (of_library("numpy.int64", ndim=0), "return value.item()"),
        (of_library("numpy.ndarray", ndim=2), "return value.tolist()"),
        (of_library("pandas.core.frame.DataFrame"), 'return df.to_dict("records")'),
        (of_library("polars.dataframe.frame.DataFrame"), "return df.to_dicts()"),
        (of_library("pandas.core.series.Series"), "return series.tolist()"),
    ],
)
def test_a_value_of_a_data_library_is_refused_with_the_next_step(value: Any, step: str) -> None:
    with pytest.raises(ResultError, match=re.escape(step)):
        result_text({"rows": value}, LIMIT)

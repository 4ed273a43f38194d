"""What a param's type accepts. Dates travel as ISO text, so that every value of a run is JSON."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

from ork.model.workflow import ParamType


class WrongTypeError(Exception):
    """The value does not fit. The message is the end of a sentence: "… is not a whole number"."""


_NAMES = {
    ParamType.ANY: "any JSON value",
    ParamType.STR: "text",
    ParamType.INT: "a whole number",
    ParamType.FLOAT: "a number",
    ParamType.BOOL: "true or false",
    ParamType.DATE: "a date such as 2026-01-31",
    ParamType.DATETIME: "a time such as 2026-01-31T02:00:00Z",
}


def type_in_words(param_type: ParamType) -> str:
    return _NAMES[param_type]


def fit(param_type: ParamType, value: Any) -> Any:
    """The value in the form it is stored in, or WrongTypeError."""
    fitted = _FITS[param_type](value)
    if fitted is None and param_type is not ParamType.ANY:
        raise WrongTypeError(f"is not {_NAMES[param_type]}")
    return fitted


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def _date(value: Any) -> str | None:
    try:
        return date.fromisoformat(value).isoformat()
    except (TypeError, ValueError):
        return None


def _time(value: Any) -> str | None:
    """A time without a zone is kept without one: the function that asked for it knows what it means."""
    try:
        return datetime.fromisoformat(value).isoformat()
    except (TypeError, ValueError):
        return None


_FITS = {
    ParamType.ANY: lambda value: value,
    ParamType.STR: lambda value: value if isinstance(value, str) else None,
    ParamType.INT: _whole,
    ParamType.FLOAT: _number,
    ParamType.BOOL: lambda value: value if isinstance(value, bool) else None,
    ParamType.DATE: _date,
    ParamType.DATETIME: _time,
}

"""What each param type accepts. Dates are stored as ISO text, so that every value of a run is JSON.

For other types see `ork.model.types`.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from ork.model.type_text import parse_type
from ork.model.types import check
from ork.model.workflow import ParamType

if TYPE_CHECKING:
    from ork.model.types import Names


class WrongTypeError(Exception):
    """The value does not have the type. The message completes a sentence: "… is not a whole number".

    `place` is the path within the value, in brackets, if it is not the whole value.
    """

    def __init__(self, message: str, place: str = "") -> None:
        super().__init__(f"{message} {place}".rstrip())
        self.place = place


_NAMES: dict[str, str] = {
    ParamType.ANY: "any JSON value",
    ParamType.STR: "text",
    ParamType.INT: "a whole number",
    ParamType.FLOAT: "a number",
    ParamType.BOOL: "true or false",
    ParamType.DATE: "a date such as 2026-01-31",
    ParamType.DATETIME: "a time such as 2026-01-31T02:00:00Z",
}


def type_in_words(param_type: str) -> str:
    return _NAMES.get(param_type) or f"{param_type}, written as JSON"


def fit(param_type: str, value: Any, types: Names | None = None) -> Any:
    """The value in its stored form. Raises WrongTypeError. `types` are the named types of the workflow."""
    if param_type not in _FITS:
        mismatch = check(value, parse_type(param_type), types or {})
        if mismatch is not None:
            raise WrongTypeError(f"is not {param_type}", f"({mismatch.of_value()})" if mismatch.path else "")
        return value
    fitted = _FITS[param_type](value)
    if fitted is None and param_type != ParamType.ANY:
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
    """A time without a zone is stored without one; its interpretation is left to the function."""
    try:
        return datetime.fromisoformat(value).isoformat()
    except (TypeError, ValueError):
        return None


_FITS: dict[str, Callable[[Any], Any]] = {
    ParamType.ANY: lambda value: value,
    ParamType.STR: lambda value: value if isinstance(value, str) else None,
    ParamType.INT: _whole,
    ParamType.FLOAT: _number,
    ParamType.BOOL: lambda value: value if isinstance(value, bool) else None,
    ParamType.DATE: _date,
    ParamType.DATETIME: _time,
}

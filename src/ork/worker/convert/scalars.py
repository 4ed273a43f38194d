"""Converts single values from JSON: its own types, and types represented by text or a number."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

NONE = type(None)
_SHOWN_CHARACTERS = 60


class ConversionError(Exception):
    """A conversion failed. The message is the end of a sentence: `.rows[3]: expected a date, got 12`."""


def expect_list(value: Any, expected: str, path: str) -> list[Any]:
    if not isinstance(value, list):
        raise mismatch(value, expected, path)
    return value


def expect_dict(value: Any, expected: str, path: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise mismatch(value, expected, path)
    return value


def _text(value: Any, path: str) -> str:
    if not isinstance(value, str):
        raise mismatch(value, "text", path)
    return value


def _whole_number(value: Any, path: str) -> int:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise mismatch(value, "a whole number", path)
    return value


def _number(value: Any, path: str) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise mismatch(value, "a number", path)
    return float(value)


def _truth(value: Any, path: str) -> bool:
    if not isinstance(value, bool):
        raise mismatch(value, "true or false", path)
    return value


def _nothing(value: Any, path: str) -> None:
    if value is not None:
        raise mismatch(value, "null", path)


def mismatch(value: Any, expected: str, path: str) -> ConversionError:
    from ork.objects.json_text import dumps

    if hasattr(value, "as_it_was"):
        from ork.model.value_reference import in_words

        return ConversionError(f"{path}: expected {expected}, got {in_words(value.description)}")
    try:
        shown = dumps(value)
    except TypeError:  # there is a stored value in it
        shown = f"a {type(value).__name__}"
    if len(shown) > _SHOWN_CHARACTERS:
        shown = shown[: _SHOWN_CHARACTERS - 1] + "…"
    return ConversionError(f"{path}: expected {expected}, got {shown}")


def type_name(annotation: Any) -> str:
    return "null" if annotation is NONE else str(getattr(annotation, "__name__", annotation))


def _to_enum(value: Any, kind: Any, path: str) -> Any:
    for member in kind:
        if member.value == value and type(member.value) is type(value):
            return member
    try:
        return kind(value)
    except (ValueError, KeyError):
        choices = ", ".join(repr(member.value) for member in kind)
        raise mismatch(value, f"one of {choices}", path) from None


def _from_text(example: str, make: Callable[[Any, str], Any]) -> Callable[[Any, Any, str], Any]:
    def maker(value: Any, kind: Any, path: str) -> Any:
        if not isinstance(value, str):
            raise mismatch(value, f"a {kind.__name__} such as {example}", path)
        try:
            return make(kind, value)
        except (ValueError, ArithmeticError):
            raise mismatch(value, f"a {kind.__name__} such as {example}", path) from None

    return maker


def _to_decimal(value: Any, kind: Any, path: str) -> Any:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        value = str(value)
    return _from_text('"1.25"', lambda decimal, text: decimal(text))(value, kind, path)


def _to_timedelta(value: Any, kind: Any, path: str) -> Any:
    return kind(seconds=_number(value, path))


def _refuse_bytes(value: Any, _kind: Any, path: str) -> Any:
    raise mismatch(value, "bytes, which JSON cannot carry: return bytes, or text", path)


JSON_TYPES: dict[Any, Callable[[Any, str], Any]] = {
    str: _text,
    int: _whole_number,
    float: _number,
    bool: _truth,
    NONE: _nothing,
    object: lambda value, _path: value,
    dict: lambda value, path: expect_dict(value, "an object", path),
    list: lambda value, path: expect_list(value, "a list", path),
    tuple: lambda value, path: tuple(expect_list(value, "a list", path)),
    set: lambda value, path: set(expect_list(value, "a list", path)),
    frozenset: lambda value, path: frozenset(expect_list(value, "a list", path)),
}

# By module and name, so that nothing is imported that the user's code has not imported.
MAKERS: dict[tuple[str, str], Callable[[Any, Any, str], Any]] = {
    ("enum", "Enum"): _to_enum,
    ("datetime", "datetime"): _from_text("2026-01-31T12:00:00Z", lambda kind, text: kind.fromisoformat(text)),
    ("datetime", "date"): _from_text("2026-01-31", lambda kind, text: kind.fromisoformat(text)),
    ("datetime", "time"): _from_text("12:30:00", lambda kind, text: kind.fromisoformat(text)),
    ("datetime", "timedelta"): _to_timedelta,
    ("decimal", "Decimal"): _to_decimal,
    ("uuid", "UUID"): _from_text("123e4567-e89b-12d3-a456-426614174000", lambda kind, text: kind(text)),
    ("pathlib", "PurePath"): _from_text("data/in.csv", lambda kind, text: kind(text)),
    ("builtins", "bytes"): _refuse_bytes,
}

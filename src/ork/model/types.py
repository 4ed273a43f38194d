"""The types of values that travel between tasks, as JSON, and whether a value is of one.

A type is
    "str" "int" "float" "bool" "date" "datetime" "any" "none", or the name of a type defined elsewhere
    "table" "array" "bytes" "file", of values that are not JSON; in JSON they are references
    {"list": T}                  {"dict": T}, whose keys are text
    {"union": [T, …]}            {"enum": [value, …]}
    {"object": {field: T, …}, "optional": [field, …], "closed": true}; the last two may be left out
    {"takes": T, "gives": T}     where more is accepted than is ever handed out, as with the defaults of a class

An object that is not closed may have more fields than it names. Dates and times are ISO 8601 text.
The worker reads this file: nothing is imported that a plain interpreter has not imported already.
"""

from __future__ import annotations

from ork.model.value_reference import description_in, kind_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, TypeAlias

    TypeJson: TypeAlias = str | dict[str, Any]
    Names: TypeAlias = Mapping[str, TypeJson]

STORED = ("table", "array", "bytes", "file")
SCALARS = ("str", "int", "float", "bool", "date", "datetime", "any", "none", *STORED)
WHOLE_INPUT = ""  # among a task's input types: the one for all of its input
_SHOWN_CHARACTERS = 60
_NO_NAMES: dict[str, Any] = {}


class Mismatch:
    """Where and how something differs from a type. `path` is "" for the whole value, else like `.rows[3].qty`.

    `why` completes a sentence that begins with the path. It is set if expected and actual do not explain the mismatch.
    """

    __slots__ = ("actual", "expected", "path", "why")

    def __init__(self, path: str, expected: str, actual: str, why: str | None = None) -> None:
        self.path = path
        self.expected = expected
        self.actual = actual
        self.why = why

    def of_types(self) -> str:
        """`.rows[].qty: str is not int`"""
        return self._sentence(f"{self.actual} is not {self.expected}")

    def of_value(self) -> str:
        """`.rows[3].qty: expected int, got "x"`"""
        return self._sentence(f"expected {self.expected}, got {self.actual}")

    def as_json(self) -> dict[str, str]:
        return {"path": self.path, "expected": self.expected, "actual": self.actual}

    def _sentence(self, comparison: str) -> str:
        if self.why is not None:
            return f"{self.path} {self.why}"
        return f"{self.path}: {comparison}" if self.path else comparison


def missing_field(path: str, expected: str) -> Mismatch:
    return Mismatch(path, expected, "nothing", "is missing")


def unknown_field(path: str, actual: str) -> Mismatch:
    return Mismatch(path, "nothing", actual, "is one field too many")


def union_of(members: Iterable[TypeJson]) -> TypeJson:
    """The union in normal form: flat, without duplicates, literals together, `none` last."""
    flat: list[TypeJson] = []
    values: list[Any] = []
    for member in members:
        for each in member["union"] if isinstance(member, dict) and "union" in member else (member,):
            if isinstance(each, dict) and "enum" in each:
                values += [value for value in each["enum"] if not _is_among(value, values)]
                each = {"enum": values}
            if each not in flat:
                flat.append(each)
    if "any" in flat:
        return "any"
    flat.sort(key=lambda each: each == "none")
    return flat[0] if len(flat) == 1 else {"union": flat}


def resolved(kind: TypeJson, names: Names) -> TypeJson:
    """The type that a name refers to; "any" for an undefined name."""
    for _ in range(len(names) + 1):
        if not isinstance(kind, str) or (kind in SCALARS and not (kind in STORED and kind in names)):
            return kind  # the four of STORED came later than the others: a type of that name is the user's
        kind = names.get(kind, "any")
    return "any"


def side_of(kind: TypeJson, side: str) -> TypeJson:
    """One side of a type that takes more than it gives; any other type unchanged."""
    return kind[side] if isinstance(kind, dict) and side in kind else kind


def check(value: Any, kind: TypeJson, names: Names = _NO_NAMES, path: str = "") -> Mismatch | None:
    """None if the JSON value matches the type, else the first mismatch."""
    shape = resolved(side_of(resolved(kind, names), "takes"), names)
    if isinstance(shape, str):
        return None if _SCALAR_CHECKS[shape](value) else Mismatch(path, shape, shown(value))
    if "union" in shape:
        return _check_union(value, shape, names, path)
    if "enum" in shape:
        return None if _is_among(value, shape["enum"]) else Mismatch(path, render_type(shape), shown(value))
    if "list" in shape and isinstance(value, list):
        return _first(check(item, shape["list"], names, f"{path}[{place}]") for place, item in enumerate(value))
    if "dict" in shape and isinstance(value, dict):
        return _first(check(item, shape["dict"], names, f"{path}.{key}") for key, item in value.items())
    if "object" in shape and isinstance(value, dict):
        return _check_object(value, shape, names, path)
    return Mismatch(path, render_type(kind), shown(value))


def _check_union(value: Any, shape: dict[str, Any], names: Names, path: str) -> Mismatch | None:
    found = None
    for member in shape["union"]:
        mismatch = check(value, member, names, path)
        if mismatch is None:
            return None
        if mismatch.path != path:  # the right kind, but wrong further down: more helpful than the whole union
            found = mismatch
    return found or Mismatch(path, render_type(shape), shown(value))


def _check_object(value: dict[str, Any], shape: dict[str, Any], names: Names, path: str) -> Mismatch | None:
    fields, optional = shape["object"], shape.get("optional", ())
    for name, kind in fields.items():
        place = f"{path}.{name}"
        if name not in value:
            if name in optional:
                continue
            return missing_field(place, render_type(kind))
        mismatch = check(value[name], kind, names, place)
        if mismatch is not None:
            return mismatch
    unknown = next((name for name in value if name not in fields), None) if shape.get("closed") else None
    return None if unknown is None else unknown_field(f"{path}.{unknown}", shown(value[unknown]))


def _first(found: Iterable[Mismatch | None]) -> Mismatch | None:
    return next((mismatch for mismatch in found if mismatch is not None), None)


def _is_among(value: Any, values: list[Any]) -> bool:
    return any(type(each) is type(value) and each == value for each in values)


def _is_whole(value: Any) -> bool:
    if isinstance(value, float):
        return value.is_integer()
    return isinstance(value, int) and not isinstance(value, bool)


def _is_date(value: Any) -> bool:
    from datetime import date

    return _is_text_for(date.fromisoformat, value)


def _is_time(value: Any) -> bool:
    from datetime import datetime

    return _is_text_for(datetime.fromisoformat, value)


def _is_text_for(read: Callable[[str], Any], value: Any) -> bool:
    if not isinstance(value, str):
        return False
    try:
        read(value)
    except ValueError:
        return False
    return True


_SCALAR_CHECKS: dict[str, Callable[[Any], bool]] = {
    "str": lambda value: isinstance(value, str),
    "int": _is_whole,
    "float": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "bool": lambda value: isinstance(value, bool),
    "date": _is_date,
    "datetime": _is_time,
    "any": lambda value: True,  # noqa: ARG005
    "none": lambda value: value is None,
    "table": lambda value: _stored_as(value) in ("table", "file", "any"),
    "array": lambda value: _stored_as(value) in ("array", "file", "any"),
    "bytes": lambda value: _stored_as(value) is not None,
    "file": lambda value: _stored_as(value) is not None,
}


def _stored_as(value: Any) -> str | None:
    """The type of the value that a reference stands for; None if it is no reference."""
    found = description_in(value)
    return None if found is None else kind_of(found)


def render_type(kind: TypeJson, side: str = "takes") -> str:
    """The type as text. Parsing it returns the same type, unless it contains classes."""
    shape = side_of(kind, side)
    if isinstance(shape, str):
        return shape
    if "list" in shape:
        return f"list[{render_type(shape['list'], side)}]"
    if "dict" in shape:
        return f"dict[str, {render_type(shape['dict'], side)}]"
    if "enum" in shape:
        return " | ".join(_json(value) for value in shape["enum"])
    if "union" in shape:
        return _render_union(shape["union"], side)
    optional = shape.get("optional", ())
    fields = (
        f"{_field_name(name)}{'?' if name in optional else ''}: {render_type(field, side)}"
        for name, field in shape["object"].items()
    )
    return "{" + ", ".join(fields) + "}"


def _render_union(members: list[TypeJson], side: str) -> str:
    words = [render_type(member, side) for member in members]
    if len(words) == 2 and words[1] == "none" and " | " not in words[0]:
        return f"{words[0]}?"
    return " | ".join(words)


def _field_name(name: str) -> str:
    return name if name.isidentifier() and name.isascii() else _json(name)


def shown(value: Any) -> str:
    """A value as short JSON, for messages."""
    text = _json(value)
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 1] + "…"


def _json(value: Any) -> str:
    from json import dumps

    return dumps(value, ensure_ascii=False, default=repr)

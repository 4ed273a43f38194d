"""The JSON form of a record: one key for each field, derived from the record's own declaration.

The command line's `--json`, the HTTP API, its OpenAPI document and the client of `ork --server` all use it, so that a
field is declared once. Times are RFC 3339 in UTC with microseconds, enums are their values, nested records are objects.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from ork.model.record import Record

R = TypeVar("R", bound=Record)


class Field(NamedTuple):
    name: str
    type: Any  # without None
    is_optional: bool  # may be None
    has_default: bool  # a reader accepts that it is missing


@cache
def fields_of(kind: type[Record]) -> tuple[Field, ...]:
    """The fields of a record class, in the order of their declaration."""
    hints = get_type_hints(kind)
    return tuple(_field(name, hints[name], name in kind._defaults) for name in kind._fields)


def to_json(record: Record, skip: Collection[str] = ()) -> dict[str, Any]:
    """Every field of the record but those in `skip`, ready for `json.dumps`."""
    return {name: _encoded(getattr(record, name)) for name in type(record)._fields if name not in skip}


def from_json(kind: type[R], row: dict[str, Any], /, **given: Any) -> R:
    """The record that `to_json` wrote. `given` holds fields that are not read from the row.

    A missing key gets the field's default: an older server does not know every field.
    """
    values = dict(given)
    for field, decode in _decoders(kind):
        if field.name not in given and (field.name in row or not field.has_default):
            value = row[field.name]
            values[field.name] = value if value is None or decode is None else decode(value)
    return kind(**values)


def time_json(time: datetime | None) -> str | None:
    """RFC 3339 in UTC, with microseconds."""
    if time is None:
        return None
    return time.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _field(name: str, hint: Any, has_default: bool) -> Field:
    if get_origin(hint) in (Union, UnionType):
        kinds = [each for each in get_args(hint) if each is not NoneType]
        is_optional = len(kinds) < len(get_args(hint))
        return Field(name, kinds[0] if len(kinds) == 1 else hint, is_optional, has_default)
    return Field(name, hint, False, has_default)


@cache
def _decoders(kind: type[Record]) -> tuple[tuple[Field, Callable[[Any], Any] | None], ...]:
    return tuple((field, _decoder(field.type)) for field in fields_of(kind))


def _decoder(kind: Any) -> Callable[[Any], Any] | None:
    """None: JSON has the value as it is."""
    if get_origin(kind) is tuple:
        decode = _decoder(get_args(kind)[0])
        return tuple if decode is None else lambda rows: tuple(map(decode, rows))
    if not isinstance(kind, type):
        return None
    if issubclass(kind, datetime):
        return datetime.fromisoformat
    if issubclass(kind, Record):
        return lambda row: from_json(kind, row)
    return kind if issubclass(kind, Enum) else None


def _encoded(value: Any) -> Any:
    if isinstance(value, datetime):
        return time_json(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Record):
        return to_json(value)
    return [_encoded(each) for each in value] if isinstance(value, tuple) else value

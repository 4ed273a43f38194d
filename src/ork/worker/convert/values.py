"""Converts JSON values to the types of a function's annotations. Strict: a wrong value is an error with its
position."""

from __future__ import annotations

import collections.abc as abc
import sys
import types
import typing

from ork.worker.convert.scalars import (
    JSON_TYPES,
    MAKERS,
    NONE,
    ConversionError,
    expect_dict,
    expect_list,
    mismatch,
    type_name,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_LISTS = (list, abc.Sequence, abc.MutableSequence, abc.Iterable, abc.Collection)
_SETS = {set: set, frozenset: frozenset, abc.Set: frozenset, abc.MutableSet: set}
_DICTS = (dict, abc.Mapping, abc.MutableMapping)
_PLAIN: dict[Any, set[type]] = {
    kind: {kind} for kind in (str, int, float, bool, dict, list)
}  # items that stay as they are


def resolve_annotation(annotation: Any, function: Callable[..., Any]) -> Any:
    """The annotation with its names resolved in the function's module; None if that is impossible."""
    holder = types.SimpleNamespace(__annotations__={"it": annotation})
    try:
        return typing.get_type_hints(holder, _globals_of(function), include_extras=True)["it"]
    except Exception:
        # A name that exists for type checkers only, or not a type.
        return None


def convert(value: Any, annotation: Any, path: str = "") -> Any:
    """The value converted to the annotation's type."""
    if annotation is typing.Any or annotation is object:
        return _as_they_were(value, path)
    if annotation is None:
        annotation = NONE
    if isinstance(annotation, type) and typing.get_origin(annotation) is None:
        return _to_class(value, annotation, path)
    return _to_form(value, annotation, path)


def _globals_of(function: Any) -> dict[str, Any]:
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    function = getattr(function, "__func__", function)
    found = getattr(function, "__globals__", None)
    if found is None:
        module = sys.modules.get(getattr(function, "__module__", None) or "")
        found = vars(module) if module else {}
    return dict(found)


def _to_form(value: Any, annotation: Any, path: str) -> Any:
    """Convert to forms of `typing`: unions, literals, containers with item types, aliases."""
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if isinstance(annotation, (typing.TypeVar, str)):
        return _as_they_were(value, path)
    if origin is typing.Union or origin is types.UnionType:
        return _to_union(value, args, path)
    if origin is typing.Literal:
        return _to_literal(value, args, path)
    if origin in (typing.Annotated, typing.Required, typing.NotRequired, typing.Final):
        return convert(value, args[0], path)
    if hasattr(annotation, "__supertype__"):
        return convert(value, annotation.__supertype__, path)
    if hasattr(annotation, "__value__"):
        return convert(value, annotation.__value__, path)
    if origin in _LISTS:
        if isinstance(value, list) and _PLAIN.get(args[0]) and set(map(type, value)) <= _PLAIN[args[0]]:
            return _as_they_were(value, path)
        return [convert(item, args[0], f"{path}[{n}]") for n, item in enumerate(expect_list(value, "a list", path))]
    if origin in _SETS:
        items = [convert(item, args[0], f"{path}[{n}]") for n, item in enumerate(expect_list(value, "a list", path))]
        return _SETS[origin](items)
    if origin is tuple:
        return _to_tuple(value, args, path)
    if origin in _DICTS:
        return _to_dict(value, args, path)
    return _to_class(value, origin, path) if isinstance(origin, type) else _as_they_were(value, path)


def _to_union(value: Any, members: tuple[Any, ...], path: str) -> Any:
    if value is None and NONE in members:
        return None
    # Numbers and booleans determine their type; text may represent many types (a date, an enum).
    if not isinstance(value, str) and type(value) in members:
        return value
    errors = []
    for member in members:
        if member is NONE:
            continue
        try:
            return convert(value, member, path)
        except ConversionError as error:
            errors.append(error)
    if len(errors) == 1:
        raise errors[0]
    raise mismatch(value, " or ".join(type_name(member) for member in members), path)


def _to_literal(value: Any, choices: tuple[Any, ...], path: str) -> Any:
    for choice in choices:
        plain = getattr(choice, "value", choice)
        if type(plain) is type(value) and plain == value:
            return choice
    raise mismatch(value, "one of " + ", ".join(repr(choice) for choice in choices), path)


def _to_tuple(value: Any, args: tuple[Any, ...], path: str) -> tuple[Any, ...]:
    items = expect_list(value, "a list", path)
    if len(args) == 2 and args[1] is Ellipsis:
        args = (args[0],) * len(items)
    if len(items) != len(args):
        raise mismatch(value, f"a list of {len(args)}", path)
    return tuple(convert(item, kind, f"{path}[{n}]") for n, (item, kind) in enumerate(zip(items, args, strict=True)))


def _to_dict(value: Any, args: tuple[Any, ...], path: str) -> dict[Any, Any]:
    key_type, value_type = args
    return {
        _to_key(key, key_type, path): convert(item, value_type, f"{path}.{key}")
        for key, item in expect_dict(value, "an object", path).items()
    }


def _to_key(key: str, kind: Any, path: str) -> Any:
    """Convert a key. Keys are always text in JSON; whole numbers are parsed."""
    if kind is int:
        try:
            return int(key)
        except ValueError:
            raise mismatch(key, "a whole number as key", path) from None
    return convert(key, kind, path)


def _as_they_were(value: Any, path: str) -> Any:
    """The value, with stored values in it read: they exist only if their module is loaded."""
    inputs = sys.modules.get("ork.worker.data.inputs")
    return value if inputs is None else inputs.as_they_were(value, path)


def _to_class(value: Any, kind: type, path: str) -> Any:
    if hasattr(value, "as_it_was"):
        return value.converted(kind, path)
    if kind in JSON_TYPES:
        return _as_they_were(JSON_TYPES[kind](value, path), path)
    maker = _maker(kind)
    if maker is not None:
        return maker(value, kind, path)
    if getattr(kind, "_is_protocol", False) or isinstance(value, kind):
        return value
    raise ConversionError(f"{path}: expected {type_name(kind)}, which cannot be made from JSON")


def _maker(kind: type) -> Callable[[Any, Any, str], Any] | None:
    """The function that creates instances of a class, by its base class."""
    if hasattr(kind, "model_validate"):
        return _to_validated
    if hasattr(kind, "__dataclass_fields__"):
        return _to_dataclass
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return _to_named_tuple
    if typing.is_typeddict(kind):
        return _to_typed_dict
    for ancestor in kind.__mro__:
        maker = MAKERS.get((ancestor.__module__.partition(".")[0], ancestor.__qualname__))
        if maker is not None:
            return maker
    return None


def _to_validated(value: Any, kind: Any, path: str) -> Any:
    try:
        return kind.model_validate(_as_they_were(value, path))
    except ValueError as error:
        raise ConversionError(f"{path}: {error}") from None


def _to_dataclass(value: Any, kind: Any, path: str) -> Any:
    given = expect_dict(value, f"an object for {kind.__name__}", path)
    hints = _class_hints(kind)
    names = [name for name, field in kind.__dataclass_fields__.items() if field.init and _is_field(field)]
    _refuse_unknown(given, names, kind, path)
    made = {
        name: convert(given[name], hints.get(name, typing.Any), f"{path}.{name}") for name in names if name in given
    }
    return _construct(kind, made, path)


def _is_field(field: Any) -> bool:
    return getattr(field._field_type, "name", "") == "_FIELD"


def _to_named_tuple(value: Any, kind: Any, path: str) -> Any:
    if isinstance(value, list):
        value = dict(zip(kind._fields, value, strict=False)) if len(value) <= len(kind._fields) else value
    given = expect_dict(value, f"an object or list for {kind.__name__}", path)
    _refuse_unknown(given, kind._fields, kind, path)
    hints = _class_hints(kind)
    made = {name: convert(item, hints.get(name, typing.Any), f"{path}.{name}") for name, item in given.items()}
    return _construct(kind, made, path)


def _to_typed_dict(value: Any, kind: Any, path: str) -> Any:
    given = expect_dict(value, f"an object for {kind.__name__}", path)
    hints = _class_hints(kind)
    # If annotations are text, the class does not know which keys are optional until they are resolved.
    optional = {name for name, hint in hints.items() if typing.get_origin(hint) is typing.NotRequired}
    missing = sorted(kind.__required_keys__ - optional - given.keys())
    if missing:
        raise ConversionError(f"{path}: {kind.__name__} lacks {', '.join(missing)}")
    return {name: convert(item, hints.get(name, typing.Any), f"{path}.{name}") for name, item in given.items()}


def _class_hints(kind: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(kind, include_extras=True)
    except Exception:
        return {}


def _construct(kind: Any, fields: dict[str, Any], path: str) -> Any:
    try:
        return kind(**fields)
    except (TypeError, ValueError) as error:
        raise ConversionError(f"{path}: {kind.__name__}: {error}") from None


def _refuse_unknown(given: dict[str, Any], names: Any, kind: type, path: str) -> None:
    unknown = [name for name in given if name not in names]
    if unknown:
        raise ConversionError(f"{path}: {kind.__name__} has no field {', '.join(unknown[:5])}")

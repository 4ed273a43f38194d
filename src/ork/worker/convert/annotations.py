"""Describes a function's annotations as types of `ork.model.types`, where the function can be imported.

Matches the conversions (`ork.worker.convert.values`, `ork.worker.call.results`): a type never rejects a value that they
accept, and every value that they return has the type. An unknown annotation is "any".
"""

from __future__ import annotations

import collections.abc as abc
import enum
import inspect
import os
import types
import typing

from ork.model.types import render_type, side_of, union_of
from ork.worker.convert.values import resolve_annotation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from ork.model.types import TypeJson

_JSON_SCALARS = (str, int, float, bool, type(None))
_LISTS = (
    list,
    set,
    frozenset,
    abc.Sequence,
    abc.MutableSequence,
    abc.Iterable,
    abc.Collection,
    abc.Set,
    abc.MutableSet,
)
_DICTS = (dict, abc.Mapping, abc.MutableMapping)
_WRAPPERS = (typing.Annotated, typing.Required, typing.NotRequired, typing.Final)
_CONTEXT = ("ork.sdk.context", "Context")
_SIMPLE: dict[Any, Any] = {
    str: "str",
    int: "int",
    float: "float",
    bool: "bool",
    type(None): "none",
    list: {"list": "any"},
    tuple: {"list": "any"},
    set: {"list": "any"},
    frozenset: {"list": "any"},
    dict: {"dict": "any"},
}
# By module and name: only types that the user's code has imported can occur here.
_BY_NAME: dict[tuple[str, str], Any] = {
    ("datetime", "datetime"): "datetime",
    ("datetime", "date"): "date",
    ("datetime", "time"): "str",
    ("datetime", "timedelta"): "float",
    ("decimal", "Decimal"): {"takes": {"union": ["str", "int", "float"]}, "gives": "str"},
    ("uuid", "UUID"): "str",
    ("pathlib", "PurePath"): "str",
    ("pandas", "DataFrame"): "table",
    ("polars", "DataFrame"): "table",
    ("polars", "LazyFrame"): "table",
    ("pyarrow", "Table"): "table",
    ("pyarrow", "RecordBatch"): "table",
    ("numpy", "ndarray"): "array",
    ("builtins", "bytes"): "bytes",
    ("builtins", "bytearray"): "bytes",
    ("ork", "File"): "file",
    ("ork", "Table"): "table",
}


def describe(annotation: Any, types: dict[str, TypeJson] | None = None) -> TypeJson:
    """The type of a resolved annotation. Classes that it names are added to `types`."""
    return _Describer({} if types is None else types).type_of(annotation)


def type_text(annotation: Any) -> str:
    """The type of the annotation as text of the definition language; classes are written as objects."""
    named: dict[str, TypeJson] = {}
    return render_type(_written_out(describe(annotation, named), named, ()))


def describe_function(function: Callable[..., Any]) -> dict[str, Any]:
    """The function's parameters and return type as JSON; "type" and "returns" are None without an annotation.

    kind: "positional_only", "named", "any_positional" (`*args`), "any_named" (`**kwargs`) or "context".
    """
    named: dict[str, TypeJson] = {}
    describer = _Describer(named)
    inner = inspect.unwrap(function)
    inner = getattr(inner, "__func__", inner)
    code = getattr(inner, "__code__", None)
    description: dict[str, Any] = {
        "parameters": [],
        "returns": None,
        "file": _shown_file(code.co_filename) if code else None,
        "line": code.co_firstlineno if code else 0,
        "types": named,
    }
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):
        description["parameters"] = [_any_named()]
        return description
    for parameter in signature.parameters.values():
        description["parameters"].append(_parameter(parameter, function, describer))
    if signature.return_annotation is not inspect.Signature.empty:
        resolved = _resolved(signature.return_annotation, function)
        description["returns"] = describer.type_of(_awaited(resolved))
    return description


def _shown_file(name: str) -> str:
    """The path relative to the working folder if it is below it."""
    base = os.getcwd().rstrip("/") + "/"
    return name.removeprefix(base)


def _any_named() -> dict[str, Any]:
    return {"name": "kwargs", "kind": "any_named", "required": False, "type": None}


def _parameter(parameter: inspect.Parameter, function: Callable[..., Any], describer: _Describer) -> dict[str, Any]:
    is_annotated = parameter.annotation is not inspect.Parameter.empty
    annotation = _resolved(parameter.annotation, function) if is_annotated else None
    kind = _KINDS[parameter.kind]
    if kind in ("named", "positional_only") and (parameter.name == "ctx" or _wants_context(annotation)):
        kind = "context"
    is_required = parameter.default is inspect.Parameter.empty and kind in ("named", "positional_only")
    found = describer.type_of(annotation) if is_annotated and kind != "context" else None
    if found is not None and parameter.default is None:
        found = union_of((found, "none"))  # `day: date = None` accepts None as well
    return {"name": parameter.name, "kind": kind, "required": is_required, "type": found}


_KINDS = {
    inspect.Parameter.POSITIONAL_ONLY: "positional_only",
    inspect.Parameter.POSITIONAL_OR_KEYWORD: "named",
    inspect.Parameter.KEYWORD_ONLY: "named",
    inspect.Parameter.VAR_POSITIONAL: "any_positional",
    inspect.Parameter.VAR_KEYWORD: "any_named",
}


def _resolved(annotation: Any, function: Callable[..., Any]) -> Any:
    if annotation is None:
        return type(None)
    found = resolve_annotation(annotation, function)
    return typing.Any if found is None else found


def _awaited(annotation: Any) -> Any:
    """The result type of an awaitable."""
    if typing.get_origin(annotation) in (abc.Awaitable, abc.Coroutine):
        return typing.get_args(annotation)[-1]
    return annotation


def _wants_context(annotation: Any) -> bool:
    choices = (annotation, *typing.get_args(annotation))
    return any((getattr(each, "__module__", ""), getattr(each, "__name__", "")) == _CONTEXT for each in choices)


class _Describer:
    """Describes types. Classes become named types, so that they may be recursive."""

    def __init__(self, types: dict[str, TypeJson]) -> None:
        self._types = types
        self._names: dict[type, str] = {}

    def type_of(self, annotation: Any) -> TypeJson:
        try:
            if annotation is None:
                return "none"
            if isinstance(annotation, type) and typing.get_origin(annotation) is None:
                return self._class(annotation)
            return self._form(annotation)
        except Exception:
            # A class whose attributes raise exceptions is the user's responsibility.
            return "any"

    def _form(self, annotation: Any) -> TypeJson:
        origin, args = typing.get_origin(annotation), typing.get_args(annotation)
        if origin is typing.Union or origin is types.UnionType:
            return union_of(self.type_of(each) for each in args)
        if origin is typing.Literal:
            return _enumerated(getattr(each, "value", each) for each in args)
        if origin in _WRAPPERS:
            return self.type_of(args[0])
        for alias in ("__supertype__", "__value__"):
            if hasattr(annotation, alias):
                return self.type_of(getattr(annotation, alias))
        if origin in _LISTS:
            return {"list": self.type_of(args[0])}
        if origin is tuple:
            return self._tuple(args)
        if origin in _DICTS:
            return {"dict": self.type_of(args[1])}
        return self._class(origin) if isinstance(origin, type) else "any"

    def _tuple(self, args: tuple[Any, ...]) -> TypeJson:
        kinds = [self.type_of(each) for each in args if each is not Ellipsis]
        is_uniform = bool(kinds) and all(kind == kinds[0] for kind in kinds)
        return {"list": kinds[0] if is_uniform else "any"}

    def _class(self, kind: type) -> TypeJson:
        if kind in _SIMPLE:
            return _SIMPLE[kind]  # type: ignore[no-any-return]
        if issubclass(kind, enum.Enum):
            return _enumerated(member.value for member in kind)
        for ancestor in kind.__mro__:
            simple = _BY_NAME.get((ancestor.__module__.partition(".")[0], ancestor.__qualname__))
            if simple is not None:
                return simple  # type: ignore[no-any-return]
        make = _maker(kind)
        return "any" if make is None else self._named(kind, lambda: make(self, kind))

    def _named(self, kind: type, make: Callable[[], TypeJson]) -> str:
        if kind not in self._names:
            taken = set(self._names.values())
            base = "".join(c if c.isalnum() else "_" for c in kind.__name__)
            name = next(name for name in (base, *(f"{base}_{n}" for n in range(2, 10_000))) if name not in taken)
            self._names[kind] = name
            self._types[name] = "any"
            self._types[name] = make()
        return self._names[kind]

    def dataclass(self, kind: Any) -> TypeJson:
        fields = {name: each for name, each in kind.__dataclass_fields__.items() if _is_field(each)}
        hints = _hints(kind)
        taken = [name for name, each in fields.items() if each.init]
        optional = [name for name in taken if not _is_missing(fields[name])]
        types_of = {name: self.type_of(hints.get(name, typing.Any)) for name in fields}
        # Fields with defaults may be missing in the input, and are always present in the output.
        return _two_faced({name: types_of[name] for name in taken}, optional, types_of, closed=True)

    def named_tuple(self, kind: Any) -> TypeJson:
        hints = _hints(kind)
        fields = {name: self.type_of(hints.get(name, typing.Any)) for name in kind._fields}
        found = _two_faced(fields, list(kind._field_defaults), fields, closed=True)
        return {"takes": {"union": [side_of(found, "takes"), {"list": "any"}]}, "gives": side_of(found, "gives")}

    def typed_dict(self, kind: Any) -> TypeJson:
        hints = _hints(kind)
        fields = {name: self.type_of(hint) for name, hint in hints.items()}
        absent = {name for name, hint in hints.items() if typing.get_origin(hint) is typing.NotRequired}
        optional = sorted((absent | kind.__optional_keys__) - _always_there(hints))
        return {"object": fields, **({"optional": optional} if optional else {})}

    def validated(self, kind: Any) -> TypeJson:
        """The input type of a pydantic model: only its field names are known, because it has its own conversion rules."""
        fields = kind.model_fields
        decorators = getattr(kind, "__pydantic_decorators__", None)
        has_own_rules = any(vars(decorators).values()) if hasattr(decorators, "__dict__") else _has_rules(decorators)
        if has_own_rules or any(each.alias or each.validation_alias for each in fields.values()):
            return "any"
        given = {name: self._model_field(each.annotation) for name, each in fields.items()}
        optional = [name for name, each in fields.items() if not each.is_required()]
        closed = kind.model_config.get("extra") == "forbid"
        return _two_faced(dict.fromkeys(fields, "any"), optional, given, closed=closed)

    def _model_field(self, annotation: Any) -> TypeJson:
        """The type of a field. Pydantic writes durations in another format."""
        found = self.type_of(annotation)
        return "any" if "timedelta" in repr(annotation) else found


def _maker(kind: Any) -> Callable[[_Describer, Any], TypeJson] | None:
    if hasattr(kind, "model_fields") and hasattr(kind, "model_validate"):
        return _Describer.validated
    if hasattr(kind, "__dataclass_fields__"):
        return _Describer.dataclass
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return _Describer.named_tuple
    return _Describer.typed_dict if typing.is_typeddict(kind) else None


def _has_rules(decorators: Any) -> bool:
    return any(getattr(decorators, name, None) for name in getattr(decorators, "__slots__", ()))


def _two_faced(
    taken: dict[str, TypeJson], optional: list[str], given: dict[str, TypeJson], *, closed: bool
) -> TypeJson:
    takes: dict[str, Any] = {"object": taken}
    if optional:
        takes["optional"] = optional
    if closed:
        takes["closed"] = True
    gives = {"object": given}
    return takes if takes == gives else {"takes": takes, "gives": gives}


def _always_there(hints: dict[str, Any]) -> set[str]:
    return {name for name, hint in hints.items() if typing.get_origin(hint) is typing.Required}


def _enumerated(values: Iterable[Any]) -> TypeJson:
    found = list(values)
    if not found or not all(isinstance(value, _JSON_SCALARS) for value in found):
        return "any"
    kinds = [{"enum": [value]} for value in found if value is not None]
    return union_of([*kinds, "none"] if None in found else kinds)


def _is_field(field: Any) -> bool:
    return getattr(field._field_type, "name", "") == "_FIELD"


def _is_missing(field: Any) -> bool:
    from dataclasses import MISSING

    return field.default is MISSING and field.default_factory is MISSING


def _hints(kind: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(kind, include_extras=True)
    except Exception:
        return dict.fromkeys(getattr(kind, "__annotations__", ()), typing.Any)


def _written_out(kind: TypeJson, named: dict[str, TypeJson], within: tuple[str, ...]) -> TypeJson:
    kind = side_of(kind, "takes")
    if isinstance(kind, str):
        if kind not in named:
            return kind
        return "any" if kind in within else _written_out(named[kind], named, (*within, kind))
    for name in ("list", "dict"):
        if name in kind:
            return {name: _written_out(kind[name], named, within)}
    if "union" in kind:
        return union_of(_written_out(each, named, within) for each in kind["union"])
    if "object" in kind:
        fields = {name: _written_out(each, named, within) for name, each in kind["object"].items()}
        return {**{key: value for key, value in kind.items() if key != "closed"}, "object": fields}
    return kind

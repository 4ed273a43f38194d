"""Which argument of a function gets which value: from inputs, then upstream outputs, then params, then defaults."""

from __future__ import annotations

import sys
from itertools import islice

from ork.worker.call.environment import HIDDEN, Bindings, is_missing, param_bound, param_bounds
from ork.worker.convert.scalars import JSON_TYPES, ConversionError
from ork.worker.data.errors import InputError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ork.sdk.context import Context

_NOTHING: Any = object()
_HAS_ARGS, _HAS_KWARGS = 0x04, 0x08
_SHOWN_CHARACTERS = 100
_SHOWN_INPUTS = 20
_SHOWN_ITEMS = 34  # of a list: more do not fit into so many characters
_CONTEXT_NAMES = ("ork.Context", "Context", "ork.sdk.context.Context")
_PLAIN = {kind.__name__: kind for kind in (str, int, float, bool, dict, list)}


class FunctionParameter:
    __slots__ = ("annotation", "default", "is_positional_only", "name")

    def __init__(self, name: str, annotation: Any, default: Any, is_positional_only: bool) -> None:
        self.name = name
        self.annotation = annotation
        self.default = default
        self.is_positional_only = is_positional_only


class Arguments:
    """The bound arguments. `shown` has them as short text for people, without secrets."""

    __slots__ = ("named", "positional", "shown")

    def __init__(self) -> None:
        self.positional: list[Any] = []
        self.named: dict[str, Any] = {}
        self.shown: dict[str, str] = {}


def bind_arguments(
    function: Callable[..., Any], spec: dict[str, Any], bindings: Bindings, make_context: Callable[[], Context]
) -> Arguments:
    """Bind values to the function's parameters. InputError names every required parameter without a value."""
    parameters, takes_any = _parameters(function)
    if not parameters and not spec["inputs"]:
        return Arguments()
    hints = _resolved_annotations(function, parameters)
    arguments = Arguments()
    unbound = []
    for parameter in parameters:
        annotation = hints.get(parameter.name, _NOTHING)
        if _wants_context(parameter, annotation):
            value: Any = make_context()
        else:
            bound = _source(parameter.name, spec)
            if bound is None:
                if parameter.default is _NOTHING:
                    unbound.append(parameter.name)
                elif parameter.is_positional_only:
                    arguments.positional.append(parameter.default)
                continue
            if spec.get("input_type") is not None and not is_missing(bound):
                from ork.worker.call.declared import check_argument

                check_argument(parameter.name, bindings.value(bound), spec)
            value = _argument(parameter, annotation, bound, bindings)
            arguments.shown[parameter.name] = HIDDEN if "secret" in bound else short(value)
        if parameter.is_positional_only:
            arguments.positional.append(value)
        else:
            arguments.named[parameter.name] = value
    if unbound:
        raise InputError(_unbound_sentence(unbound, spec))
    _bind_the_rest({parameter.name for parameter in parameters}, takes_any, spec, bindings, arguments)
    arguments.shown = dict(list(arguments.shown.items())[:_SHOWN_INPUTS])
    return arguments


def _source(name: str, spec: dict[str, Any]) -> dict[str, Any] | None:
    inputs = spec["inputs"] or {}
    if name in inputs:
        return inputs[name]  # type: ignore[no-any-return]
    if name == "item" and spec.get("item") is not None:
        return spec["item"]  # type: ignore[no-any-return]
    if name in spec["upstream"]:
        return spec["upstream"][name]  # type: ignore[no-any-return]
    if name in spec["params"]:
        return param_bound(spec["params"][name])
    return param_bounds(spec).get(name) if "sealed_params" in spec else None


def _argument(parameter: FunctionParameter, annotation: Any, bound: dict[str, Any], bindings: Bindings) -> Any:
    value = bindings.argument(bound)
    try:
        if annotation is _NOTHING or is_missing(bound) or (value is None and parameter.default is None):
            return as_they_were(value)
        if type(annotation) is type and annotation in JSON_TYPES:
            return as_they_were(JSON_TYPES[annotation](value, ""))
        # Imports `typing`, which takes ten times as long as a small task.
        from ork.worker.convert.values import convert

        return convert(value, annotation)
    except ConversionError as error:
        raise InputError(f"argument `{parameter.name}`{error}") from None


def _bind_the_rest(
    known: set[str], takes_any: bool, spec: dict[str, Any], bindings: Bindings, arguments: Arguments
) -> None:
    """Bind declared inputs without a parameter to `**kwargs`; InputError if the function has none."""
    for name, bound in (spec["inputs"] or {}).items():
        if name in known:
            continue
        if not takes_any:
            raise InputError(f"the function has no parameter `{name}`, which `inputs` gives it")
        arguments.named[name] = as_they_were(bindings.argument(bound))


def _parameters(function: Callable[..., Any]) -> tuple[list[FunctionParameter], bool]:
    """The parameters that take one value each, and whether there is `**kwargs`."""
    code = getattr(function, "__code__", None)
    if code is None or hasattr(function, "__wrapped__") or hasattr(function, "__self__"):
        return _inspected(function)
    annotations = function.__annotations__
    plain = function.__defaults__ or ()
    by_name = function.__kwdefaults__ or {}
    first_default = code.co_argcount - len(plain)
    parameters = []
    for place, name in enumerate(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]):
        if place >= code.co_argcount:
            default = by_name.get(name, _NOTHING)
        else:
            default = plain[place - first_default] if place >= first_default else _NOTHING
        annotation = annotations.get(name, _NOTHING)
        parameters.append(FunctionParameter(name, annotation, default, place < code.co_posonlyargcount))
    return parameters, bool(code.co_flags & _HAS_KWARGS)


def _inspected(function: Callable[..., Any]) -> tuple[list[FunctionParameter], bool]:
    """The same for decorated functions and other callables, by `inspect`, which is slow to import."""
    from inspect import Parameter as Kind
    from inspect import signature

    try:
        found = signature(function).parameters.values()
    except (ValueError, TypeError):
        return [], True
    parameters = [
        FunctionParameter(
            item.name,
            _NOTHING if item.annotation is Kind.empty else item.annotation,
            _NOTHING if item.default is Kind.empty else item.default,
            item.kind is Kind.POSITIONAL_ONLY,
        )
        for item in found
        if item.kind not in (Kind.VAR_POSITIONAL, Kind.VAR_KEYWORD)
    ]
    return parameters, any(item.kind is Kind.VAR_KEYWORD for item in found)


def _resolved_annotations(function: Callable[..., Any], parameters: list[FunctionParameter]) -> dict[str, Any]:
    """Annotations as types. Those that cannot be resolved (imported for type checkers only) are omitted: no
    conversion."""
    written = {
        item.name: _plain_type(item.annotation, function) for item in parameters if item.annotation is not _NOTHING
    }
    if all(type(annotation) is type and annotation in _PLAIN.values() for annotation in written.values()):
        return written
    from ork.worker.convert.values import resolve_annotation

    resolved = {name: resolve_annotation(annotation, function) for name, annotation in written.items()}
    return {name: annotation for name, annotation in resolved.items() if annotation is not None}


def _plain_type(annotation: Any, function: Callable[..., Any]) -> Any:
    """The type of a builtin name, found without imports; anything else unchanged."""
    if not isinstance(annotation, str) or annotation not in _PLAIN or hasattr(function, "__wrapped__"):
        return annotation
    known = getattr(function, "__globals__", None)
    return annotation if known is None or annotation in known else _PLAIN[annotation]


def _wants_context(parameter: FunctionParameter, annotation: Any) -> bool:
    if annotation is _NOTHING or isinstance(annotation, str):
        return parameter.name == "ctx" or parameter.annotation in _CONTEXT_NAMES
    choices = (annotation, *getattr(annotation, "__args__", ()))  # `Context | None` is a context too
    return parameter.name == "ctx" or any(_is_context(choice) for choice in choices)


def _is_context(annotation: Any) -> bool:
    return (getattr(annotation, "__module__", ""), getattr(annotation, "__name__", "")) == (
        "ork.sdk.context",
        "Context",
    )


def _unbound_sentence(names: list[str], spec: dict[str, Any]) -> str:
    listed = ", ".join(f"`{name}`" for name in names)
    known = [*(spec["inputs"] or {}), *spec["upstream"], *param_bounds(spec)]
    given = ", ".join(known) if known else "nothing"
    noun = "parameter" if len(names) == 1 else "parameters"
    return f"nothing to pass for the {noun} {listed} of `{spec['function']}`; given: {given}"


def as_they_were(value: Any) -> Any:
    """The value, with stored values in it read: they exist only if their module is loaded."""
    inputs = sys.modules.get("ork.worker.data.inputs")
    return value if inputs is None else inputs.as_they_were(value)


def short(value: Any) -> str:
    """The value as Python would write it, shortened. Of a large one only the beginning is looked at."""
    try:
        text = repr(_beginning(value, 3))
    except Exception as error:
        text = f"<unprintable: {type(error).__name__}>"
    text = text.replace("\0", "\\0")
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 1] + "…"


def _beginning(value: Any, levels: int) -> Any:
    """The value, without what would not be shown of large lists and dicts."""
    kind = type(value)
    if kind is str:
        return value[:_SHOWN_CHARACTERS]
    if kind not in (list, dict, tuple):
        return value
    if not levels:
        return value if len(value) <= _SHOWN_ITEMS else kind()
    if kind is dict:
        return {key: _beginning(value[key], levels - 1) for key in islice(value, _SHOWN_ITEMS)}
    return kind(_beginning(item, levels - 1) for item in value[:_SHOWN_ITEMS])

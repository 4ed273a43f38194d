"""The parameters of a function, read from its code object: importing `inspect` would slow down the start of workers."""

from __future__ import annotations

from ork.sdk.values import plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, TypeAlias

    DescribeType: TypeAlias = Callable[[Any, Callable[..., Any]], str]

NOTHING: Any = object()
_SCALARS = ("str", "int", "float", "bool", "date", "datetime")


class Parameter:
    """A parameter for a single value; `default` is NOTHING if there is none."""

    __slots__ = ("annotation", "default", "name")

    def __init__(self, name: str, annotation: Any, default: Any) -> None:
        self.name = name
        self.annotation = annotation
        self.default = default

    @property
    def wants_context(self) -> bool:
        return self.name == "ctx" or "Context" in _alternatives(self.annotation)


def parameters_of(function: Callable[..., Any]) -> Iterator[Parameter]:
    """Yield parameters in order. For a decorated function, those of the wrapped one."""
    found = unwrapped(function)
    code = getattr(found, "__code__", None)
    if code is None:
        return
    defaults = found.__defaults__ or ()
    first_default = code.co_argcount - len(defaults)
    by_name = found.__kwdefaults__ or {}
    for place, name in enumerate(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]):
        if place >= code.co_argcount:
            default = by_name.get(name, NOTHING)
        else:
            default = defaults[place - first_default] if place >= first_default else NOTHING
        yield Parameter(name, found.__annotations__.get(name, NOTHING), default)


def unwrapped(function: Callable[..., Any]) -> Any:
    found: Any = function
    while hasattr(found, "__wrapped__"):
        found = found.__wrapped__
    return found


def as_param(parameter: Parameter, function: Any, type_of: DescribeType | None) -> dict[str, Any] | None:
    """The parameter as a param of the workflow; None if its default is not JSON."""
    param: dict[str, Any] = {}
    alternatives = [name for name in _alternatives(parameter.annotation) if name not in ("None", "NoneType")]
    if len(alternatives) == 1 and alternatives[0] in _SCALARS:
        param["type"] = alternatives[0]
    elif parameter.annotation is not NOTHING and type_of is not None:
        param["type"] = type_of(parameter.annotation, function)
    if parameter.default is not NOTHING:
        try:
            param["default"] = plain(parameter.default, parameter.name)
        except TypeError:
            return None
    return param


def type_name(annotation: Any) -> str | None:
    """The name of the type in a definition; None if it has none."""
    name = getattr(annotation, "__name__", None)
    return name if isinstance(annotation, type) and name in _SCALARS else None


def _alternatives(annotation: Any) -> list[str]:
    """The unqualified names of the types in a union: `datetime.date | None` is `date` or `None`."""
    if annotation is NOTHING:
        return []
    if not isinstance(annotation, str):
        members = getattr(annotation, "__args__", ())
        if type(annotation).__name__ not in ("UnionType", "_UnionGenericAlias", "Union"):
            members = ()
        # A generic such as `list[str]` has the name of its origin; neither is a scalar.
        return [getattr(each, "__name__", str(each)) for each in members or (annotation,)]
    text = annotation.strip()
    if text.startswith(("Optional[", "typing.Optional[")) and text.endswith("]"):
        text = text.partition("[")[2][:-1] + " | None"
    return [part.strip().rpartition(".")[2] for part in text.split("|")]

"""Records: like frozen dataclasses with slots, but cheap to declare.

A dataclass compiles half a dozen methods when its class is created. A short command would pay that for a hundred
classes and use few of them. Here the constructor is compiled on first use, `replaced` on the first copy, and the other
methods are shared.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform

R = TypeVar("R", bound="Record")


class _Made:
    """A default created anew for each record."""

    __slots__ = ("factory",)

    def __init__(self, factory: Callable[[], Any]) -> None:
        self.factory = factory


_NO_GUARD = {"__setattr__": object.__setattr__, "__delattr__": object.__delattr__}


def made(*, default_factory: Callable[[], Any]) -> Any:
    return _Made(default_factory)


@dataclass_transform(frozen_default=True, field_specifiers=(made,))
class _RecordType(type):
    """Fields are the annotated names, those of a base class first. A class attribute is the default of its field."""

    def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any], *, frozen: bool = True) -> _RecordType:
        own = tuple(body.get("__annotations__", ()))
        inherited = next((base._fields for base in bases if isinstance(base, _RecordType)), ())
        fields = inherited + own
        defaults = {
            key: value for base in bases if isinstance(base, _RecordType) for key, value in base._defaults.items()
        }
        defaults |= {field: body.pop(field) for field in own if field in body}
        body |= {
            "__slots__": own,
            "__match_args__": fields,
            "replaced": staticmethod(_first_replaced),
            "_fields": fields,
            "_defaults": defaults,
            "_values": _values_of(fields),
        }
        if not frozen:
            body |= {**_NO_GUARD, "__hash__": None, "__init__": _first_init}
        elif fields:
            body["__new__"] = _first_new
        return super().__new__(cls, name, bases, body)

    def __init__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any], **_options: bool) -> None:
        super().__init__(name, bases, body)

    _fields: tuple[str, ...]
    _defaults: dict[str, Any]
    _values: Callable[[Any], tuple[Any, ...]]
    replaced: Callable[..., Any]


def _values_of(fields: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    if len(fields) > 1:
        return attrgetter(*fields)
    return lambda record: tuple(getattr(record, field) for field in fields)


def _first_init(self: Any, /, *args: Any, **named: Any) -> None:
    kind = type(self)
    kind.__init__ = _compiled(kind, "__init__(self", [])
    kind.__init__(self, *args, **named)


def _first_new(kind: Any, /, *args: Any, **named: Any) -> Any:
    """Compile the constructor. A frozen record is filled as an instance of an unguarded class, and its class is set
    afterwards: that takes half the time of `object.__setattr__`."""
    kind.__new__ = _compiled(kind, "__new__(_asked", ["self = _new(_open)"], ["self.__class__ = _kind", "return self"])
    return kind.__new__(kind, *args, **named)


def _compiled(kind: Any, head: str, begin: list[str], end: list[str] | None = None) -> Any:
    known: dict[str, Any] = {"_new": object.__new__, "_kind": kind, "_open": _unguarded(kind)}
    parameters, lines = [head], [*begin]
    for field in kind._fields:
        parameters.append(f"{field}=_default_{field}" if field in kind._defaults else field)
        default = kind._defaults.get(field)
        known[f"_default_{field}"] = default
        if isinstance(default, _Made):
            known[f"_make_{field}"] = default.factory
            lines.append(f"if {field} is _default_{field}: {field} = _make_{field}()")
        lines.append(f"self.{field} = {field}")
    lines += end or ["pass"]
    exec(f"def {', '.join(parameters)}):\n  " + "\n  ".join(lines), known)
    method = known[head.partition("(")[0]]
    method.__qualname__ = f"{kind.__qualname__}.{method.__name__}"
    return method


def _first_replaced(record: Any, **changes: Any) -> Any:
    kind = type(record)
    kind.replaced = staticmethod(_compiled_replaced(kind))
    return kind.replaced(record, **changes)


def _compiled_replaced(kind: Any) -> Callable[..., Any]:
    """Compile `replaced`: the engine mostly creates rows that differ in a few fields. Fills the copy like `_first_new`."""
    known = {"_same": object(), "_new": object.__new__, "_kind": kind, "_open": _unguarded(kind)}
    parameters = ["_record", *(f"{field}=_same" for field in kind._fields)]
    lines = [f"  _copy.{field} = _record.{field} if {field} is _same else {field}" for field in kind._fields]
    body = ["  _copy = _new(_open)", *lines, "  _copy.__class__ = _kind", "  return _copy"]
    exec(f"def replaced({', '.join(parameters)}):\n" + "\n".join(body), known)
    made_of: Callable[..., Any] = known["replaced"]
    return made_of


def _unguarded(kind: Any) -> Any:
    """A class of the same layout whose fields can be set."""
    return type.__new__(type(kind), kind.__name__, kind.__bases__, {"__slots__": kind.__slots__, **_NO_GUARD})


class Record(metaclass=_RecordType):
    """Immutable unless declared with `frozen=False`. Equal to a record of the same class with equal fields."""

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        values = type(self)._values
        return values(self) == values(other)

    def __hash__(self) -> int:
        return hash(type(self)._values(self))

    def __repr__(self) -> str:
        fields = ", ".join(f"{field}={getattr(self, field)!r}" for field in type(self)._fields)
        return f"{type(self).__qualname__}({fields})"

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable: cannot change {name}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable: cannot change {name}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), type(self)._values(self)


def replaced(record: R, **changes: Any) -> R:
    """A copy with some fields changed. In hot paths, `Task.replaced(task, …)` saves a call."""
    copy: R = type(record).replaced(record, **changes)
    return copy

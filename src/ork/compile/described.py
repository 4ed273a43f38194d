"""Function signatures as described by a process that imported them (`ork.worker.convert.annotations`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ork.compile.types import Typed
from ork.model.workflow import PythonCall

if TYPE_CHECKING:
    from ork.model.types import TypeJson


class DescribedParameter(NamedTuple):
    """A parameter for a single value; `type` is None without an annotation."""

    name: str
    is_required: bool
    type: Typed | None


class FunctionSignature(NamedTuple):
    """A described function. `returns` is None without an annotation."""

    name: str
    position: str  # file:line
    parameters: dict[str, DescribedParameter]
    returns: Typed | None
    takes_any_name: bool


class UninspectedFunction(NamedTuple):
    """A function that may exist but could not be inspected. `why` completes a sentence."""

    why: str


def function_key(action: PythonCall) -> str:
    """The key of a function among the described ones."""
    return f"{action.file or action.module}:{action.function}"


def read_signature(key: str, described: Mapping[str, Any]) -> FunctionSignature:
    """Parse the description that `ork.worker.convert.annotations.describe_function` returns."""
    file, _, name = key.rpartition(":")
    names = described["types"]
    kinds = {each["kind"] for each in described["parameters"]}
    parameters = {
        each["name"]: DescribedParameter(each["name"], each["required"], _typed(each["type"], names))
        for each in described["parameters"]
        if each["kind"] in ("positional_only", "named")
    }
    position = f"{described.get('file') or file}:{described['line']}"
    return FunctionSignature(name, position, parameters, _typed(described["returns"], names), "any_named" in kinds)


def _typed(kind: TypeJson | None, names: Mapping[str, TypeJson]) -> Typed | None:
    return None if kind is None else Typed(kind, names)

"""Types in a workflow file: the top-level `types`, and `input_type` and `output_type` of tasks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ork.definition.keys import Key, Reading
from ork.definition.nodes import Kind, Node
from ork.definition.problems import quoted
from ork.definition.report import Suggester
from ork.definition.values import is_scalar
from ork.model.type_text import TYPE_NAME, TypeTextError, object_type, parse_type
from ork.model.types import SCALARS, WHOLE_INPUT, render_type

if TYPE_CHECKING:
    from ork.model.types import TypeJson

_BUILT_IN = (*SCALARS, "list", "dict")

TYPE_SCHEMA: dict[str, Any] = {
    "description": "str int float bool date datetime any none, list[T], dict[str, T], T?, T | U, a name from `types`, "
    "or a map of fields to types, where `field?` may be missing.",
    "anyOf": [
        {"type": "string", "minLength": 1},
        {"type": "object", "additionalProperties": {"$ref": "#/$defs/type"}},
    ],
}


def read_types(node: Node, reading: Reading) -> dict[str, TypeJson]:
    """The types that a file defines, by name. They may be recursive and used before their definition."""
    if node.kind != Kind.MAP:
        return {}
    names = frozenset(key.value for key, _ in node.pairs())
    reading.types = dict.fromkeys(names, "any")
    found = {}
    for key, value in node.pairs():
        if not TYPE_NAME.fullmatch(key.value) or key.value in _BUILT_IN:
            why = "is a type already" if key.value in _BUILT_IN else "cannot be the name of a type"
            reading.refuse("ORK105", f"{quoted(key.value)} {why}", key, hint="such as `Order`")
            continue
        kind = read_type_json(value, reading)
        if kind is not None:
            found[key.value] = kind
    for key, _ in node.pairs():
        if _is_made_of_itself(key.value, found):
            message = f"type {quoted(key.value)} contains only itself"
            reading.refuse("ORK402", message, key, hint="put it into a field or a list")
            found[key.value] = "any"
    return found


def read_named_types(node: Node, reading: Reading) -> tuple[tuple[str, TypeJson], ...] | None:
    """The result of `read_types`, which was called first."""
    if node.kind != Kind.MAP:
        reading.expected("a map of types", node)
        return None
    return tuple(reading.types.items())


def read_type(node: Node, reading: Reading) -> str | None:
    """The type as normalized text."""
    found = read_type_json(node, reading)
    return None if found is None else render_type(found)


def read_input_type(node: Node, reading: Reading) -> tuple[tuple[str, str], ...] | None:
    """A map has a type for each input; a single type is for the whole input."""
    if node.kind != Kind.MAP:
        whole = read_type(node, reading)
        return None if whole is None else ((WHOLE_INPUT, whole),)
    pairs = ((key.value, read_type(value, reading)) for key, value in node.pairs())
    return tuple((name, kind) for name, kind in pairs if kind is not None)


def read_type_json(node: Node, reading: Reading) -> TypeJson | None:
    if node.kind == Kind.MAP:
        return _read_object(node, reading)
    if not is_scalar(node):
        reading.expected("a type", node, hint="such as `int`, `list[str]` or a map of fields")
        return None
    try:
        return parse_type(node.value, reading.types)
    except TypeTextError as error:
        _refuse(node, error, reading)
        return None


def _read_object(node: Node, reading: Reading) -> TypeJson | None:
    fields: dict[str, TypeJson] = {}
    optional = []
    for key, value in node.pairs():
        name = key.value.removesuffix("?")
        if name in fields or not name:
            reading.refuse("ORK402", f"duplicate or empty field name {quoted(name)}", key)
            continue
        kind = read_type_json(value, reading)
        # A field with a mistake still exists, so that references to it are not reported as well.
        fields[name] = "any" if kind is None else kind
        if name != key.value:
            optional.append(name)
    return object_type(fields, optional)


def _refuse(node: Node, error: TypeTextError, reading: Reading) -> None:
    hint = None
    if error.word is not None:
        known = [*SCALARS, *reading.types]
        hint = f"write `{error.suggestion}`" if error.suggestion else Suggester(known).hint(error.word)
        hint = hint or f"known: {', '.join(known[:20])}, list[T], dict[str, T], T?"
    opening = 1 if node.kind == Kind.QUOTED else 0
    column = node.column + opening + error.start
    reading.report.add_at("ORK402", str(error), node.line, column, width=error.width, hint=hint)


def _is_made_of_itself(name: str, types: dict[str, TypeJson]) -> bool:
    """True if the type contains itself without a field or an item in between."""
    seen: set[str] = set()
    waiting = list(_directly_named(types.get(name, "any")))
    while waiting:
        each = waiting.pop()
        if each == name:
            return True
        if each not in seen:
            seen.add(each)
            waiting += _directly_named(types.get(each, "any"))
    return False


def _directly_named(kind: TypeJson) -> Iterator[str]:
    if isinstance(kind, str):
        yield kind
    else:
        for member in kind.get("union", ()):
            yield from _directly_named(member)


TYPE_KEYS = (
    Key(
        "input_type",
        read_input_type,
        "The types of its inputs: a map, or one type for the whole input.",
        {"$ref": "#/$defs/type"},
    ),
    Key("output_type", read_type, "The type of its output; checked when it ends.", {"$ref": "#/$defs/type"}),
)

"""Parsers of values: `{ref: …}`, `{secret: …}`, `{const: …}`, or a plain constant."""

from __future__ import annotations

from collections.abc import Sequence

from ork.definition.keys import Reading
from ork.definition.nodes import Kind, Node
from ork.definition.problems import quoted
from ork.definition.refs import RefSyntaxError, parse_ref
from ork.definition.values import NotJsonError, is_scalar, json_constant, read_name, read_text
from ork.definition.yaml_tree import refuse_template, template_in
from ork.model.workflow import Const, Ref, Secret, Value

_SHOWN_JSON = 60
_POINTERS = ("ref", "secret", "const")
_AS_FILE = "ref as file"


def read_value(node: Node, reading: Reading) -> Value | None:
    """A plain value is a constant, unless it is a map with exactly one of the three keys."""
    pointer = pointer_of(node)
    if pointer is None:
        return _constant(node, reading)
    kind, target = pointer
    if kind == "const":
        return _constant(target, reading, literal=True)
    return pointed(kind, target, reading)


def read_word(node: Node, reading: Reading) -> Value | None:
    """One word of a command, or one variable: text, a reference or a secret."""
    pointer = pointer_of(node)
    if pointer is None:
        _refuse_templates(node, reading)
        return _as_text(node, reading)
    kind, target = pointer
    return _as_text(target, reading) if kind == "const" else pointed(kind, target, reading)


def _as_text(node: Node, reading: Reading) -> Const | None:
    text = read_text(node, reading)
    return None if text is None else Const(text)


def read_argument(node: Node, reading: Reading) -> Value | None:
    """A word of a command. Secrets are rejected: every process of the machine can see arguments."""
    value = read_word(node, reading)
    if not isinstance(value, Secret):
        return value
    hint = f"use `env`: `env: {{{value.name}: {{secret: {value.name}}}}}`"
    reading.refuse("ORK122", f"secret {quoted(value.name)} cannot be an argument", node, hint=hint)
    return None


def read_variable_value(node: Node, reading: Reading) -> Value | None:
    """Text, a reference or a secret. For any other value a hint shows how to write it as text."""
    if node.kind in (Kind.MAP, Kind.LIST) and pointer_of(node) is None:
        import json

        try:
            text = json.dumps(json_constant(node), ensure_ascii=False)
        except NotJsonError:
            text = "…"
        shown = text if len(text) <= _SHOWN_JSON else "…"
        reading.expected("text", node, hint=f"write the JSON as text: '{shown}'")
        return None
    return read_word(node, reading)


def read_path_text(node: Node, reading: Reading) -> Ref | None:
    """A path to a value, where only a reference is allowed."""
    if not is_scalar(node):
        reading.expected("a path", node)
        return None
    try:
        return parse_ref(node.value, reading.task_names)
    except RefSyntaxError as error:
        reading.refuse("ORK204", str(error), node, hint=error.hint)
        return None


def pointer_of(node: Node) -> tuple[str, Node] | None:
    """The kind of a reference, secret or literal constant, and what it points at; of `{ref: …, as: file}`, the map itself."""
    if node.kind != Kind.MAP:
        return None
    if len(node.value) == 4 and {node.value[0].value, node.value[2].value} == {"ref", "as"}:
        return _AS_FILE, node
    if len(node.value) != 2:
        return None
    key, target = node.value
    return (key.value, target) if key.value in _POINTERS else None


def pointed(kind: str, target: Node, reading: Reading) -> Ref | Secret | None:
    if kind == "secret":
        name = read_name(target, reading)
        return None if name is None else Secret(name)
    if kind == _AS_FILE:
        return _file_of(target, reading)
    return read_path_text(target, reading)


def _file_of(node: Node, reading: Reading) -> Ref | None:
    written = {key.value: child for key, child in node.pairs()}
    if not is_scalar(written["as"]) or written["as"].value != "file":
        reading.refuse(
            "ORK204", "`as` must be `file`", written["as"], hint="a value can be passed as it is, or as a file"
        )
        return None
    found = read_path_text(written["ref"], reading)
    return None if found is None else Ref(found.path, as_file=True)


def _constant(node: Node, reading: Reading, *, literal: bool = False) -> Const | None:
    hidden = None if literal else _hidden_pointer(node)
    if hidden is not None:
        hint = "give it an input of its own, or write the whole value as `{const: …}` if it is meant literally"
        message = f"{quoted(hidden.value[0].value)} inside a constant would not be resolved"
        reading.refuse("ORK204", message, hidden, hint=hint)
        return None
    if not literal:
        _refuse_templates(node, reading)
    try:
        return Const(json_constant(node))
    except NotJsonError as error:
        reading.refuse(error.code, error.message, error.node, hint=error.hint)
        return None


def _refuse_templates(node: Node, reading: Reading) -> None:
    """Report templates. The value counts as given, so that it is not reported as missing as well."""
    name = template_in(str(node.value)) if is_scalar(node) else None
    if name is not None:
        refuse_template(name, node, reading.report)
    for child in _values_below(node):
        _refuse_templates(child, reading)


def _hidden_pointer(node: Node) -> Node | None:
    """A `ref` or `secret` nested in a constant, where it would not be resolved."""
    for child in _values_below(node):
        pointer = pointer_of(child)
        if pointer is not None and pointer[0] != "const":
            return child
        found = _hidden_pointer(child)
        if found is not None:
            return found
    return None


def _values_below(node: Node) -> Sequence[Node]:
    if node.kind == Kind.MAP:
        return [child for _, child in node.pairs()]
    return node.value if node.kind == Kind.LIST else ()

"""`when`: conditions for a task to run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ork.definition.bindings import read_path_text, read_value
from ork.definition.keys import Key, KeyTable, Reading
from ork.definition.nodes import Kind, Node, is_null
from ork.definition.problems import quoted
from ork.definition.values import read_boolean
from ork.model.workflow import Condition, Const, Op

_OPS = ", ".join(Op)


def read_when(node: Node, reading: Reading) -> tuple[Condition, ...] | None:
    """One condition or a list of them; all must hold."""
    if node.kind != Kind.LIST:
        return tuple(_conditions(node, reading)) or None
    found = tuple(condition for child in node.value for condition in _conditions(child, reading))
    if not node.value:
        reading.refuse("ORK119", "there is no condition here", node, hint=_example())
    return found or None


def _conditions(node: Node, reading: Reading) -> Iterator[Condition]:
    if node.kind != Kind.MAP:
        reading.expected("a condition", node, hint=_example())
        return
    values = CONDITION_TABLE.read(node, reading) or {}
    written = {key.value for key, _ in node.pairs()}
    if "ref" not in written:
        reading.refuse("ORK119", "the condition has no `ref`", node, hint=_example())
    if not any(op in written for op in Op):
        reading.refuse("ORK119", "the condition has no comparison", node, hint=f"add one of: {_OPS}")
    ref = values.pop("ref", None)
    if ref is not None:
        yield from (Condition(ref, Op(name), constant.value) for name, constant in values.items())


def _read_constant(node: Node, reading: Reading) -> Const | None:
    found = read_value(node, reading)
    if found is None or isinstance(found, Const):
        return found
    reading.refuse("ORK119", "a condition compares with a constant", node, hint="write the value itself")
    return None


def _read_ordered(node: Node, reading: Reading) -> Const | None:
    constant = _read_constant(node, reading)
    if constant is not None and (isinstance(constant.value, bool) or not isinstance(constant.value, int | float | str)):
        reading.expected("a number or text", node)
        return None
    return constant


def _read_choices(node: Node, reading: Reading) -> Const | None:
    constant = _read_constant(node, reading)
    if constant is not None and not isinstance(constant.value, list):
        reading.expected("a list", node, hint=f"write `[{node.value}]`" if not is_null(node) else None)
        return None
    return constant


def _read_exists(node: Node, reading: Reading) -> Const | None:
    found = read_boolean(node, reading)
    return None if found is None else Const(found)


_READERS: dict[Op, tuple[Any, str, dict[str, Any]]] = {
    Op.EQUALS: (_read_constant, "The value is equal to this.", {}),
    Op.NOT_EQUALS: (_read_constant, "The value is not equal to this.", {}),
    Op.LT: (_read_ordered, "The value is less than this.", {"type": ["number", "string"]}),
    Op.LE: (_read_ordered, "The value is at most this.", {"type": ["number", "string"]}),
    Op.GT: (_read_ordered, "The value is greater than this.", {"type": ["number", "string"]}),
    Op.GE: (_read_ordered, "The value is at least this.", {"type": ["number", "string"]}),
    Op.IN: (_read_choices, "The value is one of these.", {"type": "array"}),
    Op.EXISTS: (_read_exists, "Whether there is such a value; null is one.", {"type": "boolean"}),
}

CONDITION_TABLE = KeyTable(
    "a condition",
    (
        Key("ref", read_path_text, "The value to compare.", {"$ref": "#/$defs/path"}, required=True),
        *(
            Key(op.value, read, description, schema, nullable=op in (Op.EQUALS, Op.NOT_EQUALS))
            for op, (read, description, schema) in _READERS.items()
        ),
    ),
)

WHEN_KEY = Key(
    "when",
    read_when,
    "A condition on a value, or a list of conditions; the task is skipped unless all hold.",
    {"anyOf": [{"$ref": "#/$defs/condition"}, {"type": "array", "items": {"$ref": "#/$defs/condition"}}]},
)


def _example() -> str:
    return f"write {quoted('{ref: tasks.extract.output.count, gt: 0}')}"

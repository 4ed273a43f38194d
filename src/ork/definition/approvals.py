"""Approval tasks: a person decides."""

from __future__ import annotations

from typing import Any

from ork.definition.keys import Key, KeyTable, Reading
from ork.definition.nodes import Kind, Node
from ork.definition.problems import quoted
from ork.definition.values import choice, duration, is_scalar, read_text
from ork.model.workflow import NotBy

APPROVAL_TABLE = KeyTable(
    "an approval",
    (
        Key(
            "message",
            read_text,
            "The question.",
            {"type": "string", "minLength": 1},
            required=True,
        ),
        Key(
            "timeout",
            duration(zero_allowed=False),
            "How long it waits before it fails. Default: no limit.",
            {"type": ["number", "string"]},
        ),
        Key(
            "not_by",
            choice(NotBy),
            "Who must not approve it: `starter`, the person who started the run.",
            {"enum": [*map(str, NotBy)]},
        ),
    ),
)

APPROVAL_SCHEMA = {"anyOf": [{"type": "string", "minLength": 1}, {"$ref": "#/$defs/approval"}]}

# Nothing runs, so other keys would have no effect.
_ALLOWED = frozenset({"approval", "depends_on", "run_if", "when", "timeout"})


def read_approval(node: Node, reading: Reading) -> dict[str, Any] | None:
    """Parse `message`, `timeout` and `not_by`; a string is the message."""
    if is_scalar(node):
        text = read_text(node, reading)
        values: dict[str, Any] = {} if text is None else {"message": text}
    elif node.kind == Kind.MAP:
        values = APPROVAL_TABLE.read(node, reading) or {}
    else:
        reading.expected("the question as text, or a map with `message`", node)
        return None
    if "message" not in values and node.kind == Kind.MAP and "message" in APPROVAL_TABLE.meant(node):
        return None  # misspelled, which is an error already
    if not str(values.get("message", "")).strip():
        reading.refuse("ORK102", "the approval has no `message`", node, hint="add `message: …`")
        return None
    return values


def check_approval(values: dict[str, Any], key: Node, body: Node, reading: Reading) -> bool:
    """Reject every key that has no effect on an approval."""
    is_right = True
    for name, _ in body.pairs():
        if name.value not in _ALLOWED and name.value in values:
            message = f"task {quoted(key.value)} is an approval: `{name.value}` has no effect"
            reading.refuse("ORK115", message, name, hint=f"put `{name.value}` on a task that depends on it")
            is_right = False
    if "timeout" in values and "timeout" in values["approval"]:
        message = f"task {quoted(key.value)} has a `timeout` of its own and one in its approval"
        reading.refuse("ORK115", message, body.get("timeout") or key, hint="keep one of them")
        is_right = False
    return is_right

"""The keys of a fan-out: `parallel`, `foreach` and `concurrency`."""

from __future__ import annotations

from typing import Any

from ork.definition.bindings import read_path_text, read_value
from ork.definition.keys import Key, Reading
from ork.definition.nodes import Kind, Node, scalar_value
from ork.definition.problems import quoted
from ork.definition.values import integer, is_scalar
from ork.model.workflow import Const, Ref

MAX_INSTANCES = 100_000

_read_count = integer(1, MAX_INSTANCES)


def _read_parallel(node: Node, reading: Reading) -> int | Ref | None:
    """A number, or a reference to one."""
    if is_scalar(node):
        is_path = isinstance(scalar_value(node), str) and not str(node.value).isdigit()
        return read_path_text(node, reading) if is_path else _read_count(node, reading)
    found = read_value(node, reading)
    if found is None or isinstance(found, Ref):
        return found
    reading.expected("a whole number or a path to one", node)
    return None


def _read_foreach(node: Node, reading: Reading) -> Const | Ref | None:
    """A list, or a reference to one."""
    if is_scalar(node) and isinstance(scalar_value(node), str):
        return read_path_text(node, reading)
    found = read_value(node, reading)
    if found is None or isinstance(found, Ref):
        return found
    if not isinstance(found, Const) or not isinstance(found.value, list):
        reading.expected("a list or a path to one", node, hint="such as `[a, b]` or `tasks.extract.output.files`")
        return None
    if len(found.value) > MAX_INSTANCES:
        message = f"{len(found.value):,} items are more than {MAX_INSTANCES:,}"
        reading.refuse("ORK104", message, node, hint="let each instance work on a batch of them")
        return None
    return found


_COUNT = {"type": "integer", "minimum": 1, "maximum": MAX_INSTANCES}

FAN_OUT_KEYS = (
    Key(
        "parallel",
        _read_parallel,
        "Number of instances: a number, or a reference to one.",
        {"anyOf": [_COUNT, {"$ref": "#/$defs/path"}]},
    ),
    Key(
        "foreach",
        _read_foreach,
        "One instance for each item: a list, or a reference to one. The function gets the item as `item`.",
        {"anyOf": [{"type": "array", "maxItems": MAX_INSTANCES}, {"$ref": "#/$defs/path"}]},
    ),
    Key("concurrency", _read_count, "Maximum number of instances at once.", _COUNT),
)


def check_fan_out(values: dict[str, Any], key: Node, body: Node, reading: Reading) -> None:
    """Report `concurrency` without a fan-out, where it has no effect."""
    is_written = any(body.get(name) is not None for name in ("parallel", "foreach"))
    if "concurrency" in values and not is_written and body.kind == Kind.MAP:
        message = f"task {quoted(key.value)} has `concurrency`, but no `foreach` or `parallel`"
        hint = "add `foreach:` or `parallel:`; across tasks, use a `pool`"
        reading.refuse("ORK120", message, body.get("concurrency") or key, hint=hint)

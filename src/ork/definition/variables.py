"""Names of environment variables in `pass_env`: `NAME`, or `PREFIX_*` for all with this prefix."""

from __future__ import annotations

import re
from typing import Any

from ork.definition.keys import Reading
from ork.definition.nodes import Node
from ork.definition.problems import quoted
from ork.definition.values import items_of, read_text

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\*?")


def _read_variable(node: Node, reading: Reading) -> str | None:
    text = read_text(node, reading)
    if text is None:
        return None
    hint = "write NAME, or PREFIX_* for all that begin so"
    if not _VARIABLE.fullmatch(text):
        reading.refuse("ORK608", f"{quoted(text)} is not a valid name of an environment variable", node, hint=hint)
        return None
    if text.startswith("ORK_"):
        reading.refuse("ORK608", f"{quoted(text)} cannot be passed: names with ORK_ are reserved", node, hint=hint)
        return None
    return text


read_pass_env = items_of(_read_variable)
PASS_ENV_SCHEMA: dict[str, Any] = {"type": "array", "items": {"type": "string"}}

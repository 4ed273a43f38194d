"""The nodes of a YAML tree. Each knows its position; scalars are interpreted on demand.

Follows YAML 1.2: `yes`, `no`, `on`, `off`, `1_000` and `2026-01-01` are text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import IntEnum
from typing import Any, TypeAlias

_NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_CONSTANTS: dict[str, bool | float | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
    **{sign + word: float(sign + "inf") for sign in ("", "+", "-") for word in (".inf", ".Inf", ".INF")},
}


class Kind(IntEnum):
    PLAIN = 0  # an unquoted scalar; its text decides its type
    QUOTED = 1  # a quoted scalar; always text
    LIST = 2
    MAP = 3
    BAD = 4  # already reported; parsers skip it


class Node:
    """Lines and columns count from 0.

    `value` is text, the nodes of a list, or the alternating keys and values of a map: a large file has a million nodes,
    and a tuple per pair would take a fifth of its memory.
    """

    __slots__ = ("column", "kind", "line", "value", "width")

    def __init__(self, kind: Kind, value: Any, line: int, column: int, width: int) -> None:
        self.kind = kind
        self.value = value
        self.line = line
        self.column = column
        self.width = width

    def pairs(self) -> Iterator[tuple[Node, Node]]:
        """Yield keys and values of a map in source order."""
        each = iter(self.value)
        return zip(each, each, strict=True)

    def get(self, key: str) -> Node | None:
        """The value of a key. A linear search: fine for the few keys of a task, not for a map of tasks."""
        return (
            next((value for name, value in self.pairs() if name.value == key), None) if self.kind == Kind.MAP else None
        )

    def is_written(self, key: str) -> bool:
        """True if the key has a value other than null."""
        value = self.get(key)
        return value is not None and not is_null(value)


Scalar: TypeAlias = "str | int | float | bool | None"


def scalar_value(node: Node) -> Scalar:
    """The value of a scalar. A number with too many digits stays text."""
    text: str = node.value
    if node.kind != Kind.PLAIN:
        return text
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[0] not in "+-.0123456789":
        return text
    try:
        if _INTEGER.fullmatch(text):
            return int(text, 0) if text[:2] in ("0x", "0o") else int(text)
        return float(text) if _NUMBER.fullmatch(text) else text
    except ValueError:  # more digits than Python converts
        return text


def is_null(node: Node) -> bool:
    return node.kind == Kind.PLAIN and node.value in ("", "~", "null", "Null", "NULL")

"""Rates: `10/s`, `100/m`, `1000/h`, or a map of `count` and `seconds`."""

from __future__ import annotations

import re

from ork.definition.keys import Key, KeyTable, Reading
from ork.definition.nodes import Kind, Node
from ork.definition.problems import quoted
from ork.definition.values import duration, integer, is_scalar, seconds_of
from ork.model.workflow import Rate

MAX_COUNT = 1_000_000
_RATE = re.compile(r"(\d{1,7})\s*/\s*(.+)")
_UNIT = re.compile(r"ms|[smhd]")
_EXAMPLES = "write `10/s`, `100/m`, `1000/h`, or `{count: 5, seconds: 30}`"

RATE_TABLE = KeyTable(
    "a rate",
    (
        Key(
            "count",
            integer(1, MAX_COUNT),
            "Maximum number of starts, also as a burst.",
            {"type": "integer", "minimum": 1, "maximum": MAX_COUNT},
            required=True,
        ),
        Key(
            "seconds",
            duration(zero_allowed=False),
            "Length of the period in seconds.",
            {"type": ["number", "string"]},
            required=True,
        ),
    ),
)

RATE_SCHEMA = {"anyOf": [{"type": "string", "pattern": r"^\d+\s*/\s*[\d.]*(ms|[smhd])$"}, {"$ref": "#/$defs/rate"}]}


def read_rate(node: Node, reading: Reading) -> Rate | None:
    if node.kind == Kind.MAP:
        return _from_map(node, reading)
    rate = _from_text(str(node.value)) if is_scalar(node) else None
    if rate is None and node.kind != Kind.BAD:
        shown = quoted(node.value) if is_scalar(node) else "this"
        reading.refuse("ORK118", f"{shown} is not a rate", node, hint=_EXAMPLES)
    return rate


def _from_map(node: Node, reading: Reading) -> Rate | None:
    values = RATE_TABLE.read(node, reading) or {}
    for name in RATE_TABLE.missing(node):
        reading.refuse("ORK118", f"the rate has no `{name}`", node, hint=_EXAMPLES)
    return Rate(**values) if len(values) == len(RATE_TABLE.keys) else None


def _from_text(text: str) -> Rate | None:
    found = _RATE.fullmatch(text.strip())
    if found is None:
        return None
    count, per = int(found[1]), found[2]
    seconds = seconds_of(f"1{per}" if _UNIT.fullmatch(per) else per)
    return Rate(count, seconds) if 0 < count <= MAX_COUNT and seconds else None

"""The `budget` of a workflow: `{usd: 5, on_exceed: cancel}`."""

from __future__ import annotations

import math

from ork.definition.keys import Key, KeyTable, Reading
from ork.definition.nodes import Kind, Node, scalar_value
from ork.definition.problems import quoted
from ork.definition.values import choice, is_scalar
from ork.model.workflow import Budget, OnExceed

MAX_USD = 1_000_000_000
_EXAMPLE = "write `budget: {usd: 5, on_exceed: cancel}`, or `on_exceed: alert`"


def _read_usd(node: Node, reading: Reading) -> float | None:
    value = scalar_value(node) if is_scalar(node) else None
    if not isinstance(value, int | float) or isinstance(value, bool):
        shown = quoted(node.value) if is_scalar(node) else "this"
        if node.kind != Kind.BAD:
            reading.refuse("ORK123", f"{shown} is not an amount of US dollars", node, hint="write a number: 5 or 0.5")
        return None
    if not math.isfinite(value) or not 0 < value <= MAX_USD:
        reading.refuse("ORK123", f"{quoted(node.value)} is not between more than 0 and {MAX_USD:,} dollars", node)
        return None
    return float(value)


BUDGET_TABLE = KeyTable(
    "a budget",
    (
        Key(
            "usd",
            _read_usd,
            "US dollars that a run may cost, by estimate.",
            {"type": "number", "exclusiveMinimum": 0, "maximum": MAX_USD},
            required=True,
        ),
        Key(
            "on_exceed",
            choice(OnExceed),
            "What happens when a run costs more: alert, or cancel the run (and alert). Default: alert.",
            {"enum": [option.value for option in OnExceed]},
        ),
    ),
)


def read_budget(node: Node, reading: Reading) -> Budget | None:
    if is_scalar(node):
        reading.refuse("ORK123", f"{quoted(node.value)} is not a budget", node, hint=_EXAMPLE)
        return None
    values = BUDGET_TABLE.read(node, reading)
    if values is None:
        return None
    if BUDGET_TABLE.missing(node):
        reading.refuse("ORK123", "the budget has no `usd`", node, hint=_EXAMPLE)
    return Budget(**values) if "usd" in values else None

"""4xx: types."""

from __future__ import annotations

from ork.definition.codes.explanation import Explanation, by_code

CODES = by_code(
    Explanation(
        "ORK401",
        "a default that does not fit its type",
        "The default of a param is checked like any other value of it.",
        "params:\n  count: {type: int, default: ten}",
        "params:\n  count: {type: int, default: 10}",
    ),
    Explanation(
        "ORK402",
        "an unknown type",
        "The types of params are any, str, int, float, bool, date and datetime.",
        "params:\n  day: {type: dates}",
        "params:\n  day: {type: date}",
    ),
    Explanation(
        "ORK403",
        "params that do not fit the workflow",
        "A run gets the params its workflow declares: no others, each of the declared type, and all that have no default.",
        "ork run etl.yaml -p day=yesterday",
        "ork run etl.yaml -p day=2026-01-31",
    ),
)

"""The price file: `prices.yaml` beside this module, and a project's own, which replaces some or all of its prices."""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from functools import cache, partial
from importlib.resources import files
from typing import Any

from ork.definition.keys import Key, KeyTable, Reader, Reading
from ork.definition.nodes import Kind, Node, is_null, scalar_value
from ork.definition.problems import Problem, quoted
from ork.definition.report import ProblemReport, Suggester
from ork.definition.values import entries_of, is_scalar, items_of, read_text
from ork.definition.yaml_tree import parse_yaml
from ork.model.infra import Where
from ork.model.prices import BilledTime, Price, Prices, PriceSource
from ork.model.record import replaced

PROJECT_SOURCE = "project"
MAX_USD = 1_000_000.0
_DATE = re.compile(r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])")
_UNITS = ("second", "vcpu_second", "gib_second")
_EXAMPLE = "write `local.vcpu_second: 0.00001`, or `{usd: 0.005, per: 1000}`"


@cache
def shipped_prices() -> Prices:
    """The prices that come with Ork."""
    report = ProblemReport("prices.yaml")
    found = _read(files("ork.definition").joinpath("prices.yaml").read_bytes(), report, known=None)
    if found is None or not report.is_clean:
        raise ValueError(f"the price file of this package has errors: {report.problems()}")
    return found


def load_prices(data: bytes, file: str) -> tuple[Prices, tuple[Problem, ...]]:
    """The shipped prices with those of a project's file in their place, and all problems in the file."""
    shipped, report = shipped_prices(), ProblemReport(file)
    found = _read(data, report, known=_known_names(shipped))
    if found is None:
        return shipped, report.problems()
    return replaced(
        found,
        items={**shipped.items, **found.items},
        billing={**shipped.billing, **found.billing},
        sources={**shipped.sources, PROJECT_SOURCE: PriceSource(file, date=found.date), **found.sources},
        file=file,
    ), report.problems()


def _known_names(shipped: Prices) -> list[str]:
    return [*shipped.items, *(f"{where}.{unit}" for where in Where for unit in _UNITS)]


def _read(data: bytes, report: ProblemReport, known: Collection[str] | None) -> Prices | None:
    """The file alone. `known` are the names that it may price; None: any."""
    root = parse_yaml(data, report)
    if root is None:
        return None
    reading = Reading(report)
    if is_null(root):
        report.add_file("ORK123", "the price file is empty", hint="write `date: 2026-11-18` and `prices:`")
        return None
    groups = _groups(root.get("groups"), reading) if root.kind == Kind.MAP else {}
    values = _table(partial(_read_price, groups=groups), known).read(root, reading)
    if values is None:
        return None
    for name in FILE_TABLE.missing(root):
        reading.refuse("ORK123", f"the price file has no `{name}`", root, hint=_MISSING_HINTS[name])
    if "date" not in values:
        return None
    return Prices(
        values["date"],
        dict(values.get("prices", ())),
        dict(values.get("billing", ())),
        dict(values.get("sources", ())),
    )


_MISSING_HINTS = {"date": "say of what day the prices are: `date: 2026-11-18`", "prices": _EXAMPLE}


def _read_date(node: Node, reading: Reading) -> str | None:
    text = read_text(node, reading)
    if text is not None and not _DATE.fullmatch(text):
        reading.refuse("ORK123", f"{quoted(text)} is not a date", node, hint="write it as 2026-11-18")
        return None
    return text


def _number(what: str, most: float, *, zero_allowed: bool) -> Reader:
    def read(node: Node, reading: Reading) -> float | None:
        value = scalar_value(node) if is_scalar(node) else None
        if not isinstance(value, int | float) or isinstance(value, bool):
            reading.expected(what, node, hint=_EXAMPLE)
            return None
        if not math.isfinite(value) or not 0 <= value <= most or (value == 0 and not zero_allowed):
            least = "0" if zero_allowed else "more than 0"
            reading.refuse("ORK104", f"{quoted(node.value)} is not between {least} and {most:,.0f}", node)
            return None
        return float(value)

    return read


_read_usd = _number("an amount in dollars", MAX_USD, zero_allowed=True)
_AMOUNT = {"type": "number", "minimum": 0, "maximum": MAX_USD}
_TEXT = {"type": "string"}

PRICE_TABLE = KeyTable(
    "a price",
    (
        Key("usd", _read_usd, "Dollars for `per` units.", _AMOUNT, required=True),
        Key("per", _number("a number of units", 1e15, zero_allowed=False), "Number of units. Default: 1.", _AMOUNT),
        Key("source", read_text, "A name from `sources`.", _TEXT),
        Key(
            "regions",
            entries_of(read_text, _read_usd),
            "Dollars in these regions, or groups of regions.",
            {"type": "object", "additionalProperties": _AMOUNT},
        ),
        Key("free", read_text, "What is not billed, for people: `2,000,000 a month`.", _TEXT),
    ),
)

_seconds = _number("a number of seconds", 86_400.0, zero_allowed=True)
BILLING_TABLE = KeyTable(
    "how time is billed",
    (
        Key("minimum_seconds", _seconds, "The shortest time that is billed.", _AMOUNT),
        Key("step_seconds", _seconds, "Times are rounded up to multiples of it.", _AMOUNT),
        Key("source", read_text, "A name from `sources`.", _TEXT),
    ),
)


def _read_from(node: Node, reading: Reading) -> bool | None:
    """True for a page that was read."""
    text = read_text(node, reading)
    if text is not None and text not in ("page", "memory"):
        reading.refuse("ORK104", f"{quoted(text)} is not one of page, memory", node)
        return None
    return None if text is None else text == "page"


SOURCE_TABLE = KeyTable(
    "a source of prices",
    (
        Key("title", read_text, "What was read.", _TEXT, required=True),
        Key("url", read_text, "Its address.", _TEXT),
        Key("date", _read_date, "When it was read.", _TEXT),
        Key(
            "from",
            _read_from,
            "`page`: it was read then; `memory`: it has to be checked.",
            {"enum": ["page", "memory"]},
        ),
    ),
)


def _read_source(node: Node, reading: Reading) -> PriceSource | None:
    values = SOURCE_TABLE.read(node, reading)
    if values is None:
        return None
    for name in SOURCE_TABLE.missing(node):
        reading.refuse("ORK123", f"the source has no `{name}`", node)
    is_checked = values.pop("from", True)
    return PriceSource(is_checked=is_checked, **values) if "title" in values else None


def _read_billing(node: Node, reading: Reading) -> BilledTime | None:
    values = BILLING_TABLE.read(node, reading)
    return None if values is None else BilledTime(values.get("minimum_seconds", 0.0), values.get("step_seconds", 0.0))


def _read_price(node: Node, reading: Reading, *, groups: dict[str, tuple[str, ...]]) -> Price | None:
    """A price of one unit. A number is the dollars for it."""
    values: dict[str, Any] | None
    if is_scalar(node):
        usd = _read_usd(node, reading)
        return None if usd is None else Price(usd, PROJECT_SOURCE)
    values = PRICE_TABLE.read(node, reading)
    if values is None:
        return None
    for name in PRICE_TABLE.missing(node):
        reading.refuse("ORK123", f"the price has no `{name}`", node, hint=_EXAMPLE)
    if "usd" not in values:
        return None
    per = values.get("per", 1.0)
    regions = {region: usd / per for name, usd in values.get("regions", ()) for region in groups.get(name, (name,))}
    return Price(values["usd"] / per, values.get("source", PROJECT_SOURCE), regions, values.get("free"))


def _groups(node: Node | None, reading: Reading) -> dict[str, tuple[str, ...]]:
    return {} if node is None else dict(_read_groups(node, reading) or ())


_read_groups = entries_of(read_text, items_of(read_text))


def _skip(node: Node, _reading: Reading) -> None:
    """For keys that are read before the others."""


def _priced_name(known: Collection[str] | None) -> Reader:
    def read(node: Node, reading: Reading) -> str | None:
        text = read_text(node, reading)
        if text is None or known is None or text in known:
            return text
        hint = Suggester(known).hint(text) or f"one of: {', '.join(known)}"
        reading.refuse("ORK123", f"Ork uses no price {quoted(text)}", node, hint=hint)
        return None

    return read


def _table(read_price: Reader, known: Collection[str] | None) -> KeyTable:
    price = {"anyOf": [_AMOUNT, {"$ref": "#/$defs/price"}]}
    return KeyTable(
        "a price file",
        (
            Key("date", _read_date, "The day of the prices.", _TEXT, required=True),
            Key(
                "sources",
                entries_of(read_text, _read_source),
                "Where prices were found, by a name of your own.",
                {"type": "object", "additionalProperties": {"$ref": "#/$defs/source"}},
            ),
            Key(
                "groups",
                _skip,
                "Names for groups of regions.",
                {"type": "object", "additionalProperties": {"type": "array", "items": _TEXT}},
            ),
            Key(
                "billing",
                entries_of(read_text, _read_billing),
                "How time is billed, by service.",
                {"type": "object", "additionalProperties": {"$ref": "#/$defs/billing"}},
            ),
            Key(
                "prices",
                entries_of(_priced_name(known), read_price),
                "Dollars by name, such as `cloudrun.vcpu_second` or `local.second`.",
                {"type": "object", "additionalProperties": price},
                required=True,
            ),
        ),
    )


FILE_TABLE = _table(_skip, None)

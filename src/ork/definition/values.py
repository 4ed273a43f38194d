"""Parsers of scalars: text, names, numbers, durations, choices, lists of them, and JSON constants."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable
from enum import StrEnum
from typing import Any, TypeVar

from ork.definition.keys import Reader, Reading
from ork.definition.nodes import Kind, Node, is_null, scalar_value
from ork.definition.problems import quoted
from ork.definition.report import Suggester
from ork.model.ids import NAME_PATTERN

Choice = TypeVar("Choice", bound=StrEnum)

NAME = re.compile(NAME_PATTERN)
MAX_SECONDS = 10 * 365 * 86_400
_SAFE_INTEGER = 2**63
_CLOUD_NAME = re.compile(r"[a-z][a-z0-9.:-]{0,99}")
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|[smhd]))+")
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhd])")
_UNIT_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_OLD_BOOLEANS = {"yes": "true", "on": "true", "y": "true", "no": "false", "off": "false", "n": "false"}


def is_scalar(node: Node) -> bool:
    return node.kind == Kind.PLAIN or node.kind == Kind.QUOTED


def read_text(node: Node, reading: Reading) -> str | None:
    """Any scalar as its source text: `version: 1.10` is the text 1.10."""
    if not is_scalar(node):
        reading.expected("text", node)
        return None
    return str(node.value)


def read_cloud_name(node: Node, reading: Reading) -> str | None:
    """The id of a Google Cloud project, or the name of a region."""
    text = read_text(node, reading)
    if text is not None and not _CLOUD_NAME.fullmatch(text):
        hint = "it has lowercase letters, digits and hyphens, such as `my-project` or `europe-west1`"
        reading.refuse("ORK105", f"{quoted(text)} cannot be the name of a project or region", node, hint=hint)
        return None
    return text


def read_name(node: Node, reading: Reading) -> str | None:
    text = read_text(node, reading)
    if text is not None and not NAME.fullmatch(text):
        hint = "a name begins with a letter, digit or _ and holds at most 128 of: letters, digits, _ - ."
        reading.refuse("ORK105", f"{quoted(text)} cannot be a name", node, hint=hint)
        return None
    # A large file repeats names: share one copy.
    return None if text is None else sys.intern(text)


def read_boolean(node: Node, reading: Reading) -> bool | None:
    value = scalar_value(node) if is_scalar(node) else None
    if isinstance(value, bool):
        return value
    suggestion = _OLD_BOOLEANS.get(str(node.value).lower()) if is_scalar(node) else None
    reading.expected("true or false", node, hint=f"write `{suggestion}`" if suggestion else None)
    return None


def integer(minimum: int, maximum: int) -> Reader:
    def read(node: Node, reading: Reading) -> int | None:
        value = scalar_value(node) if is_scalar(node) else None
        if not isinstance(value, int) or isinstance(value, bool):
            reading.expected("a whole number", node, hint=_unquote_hint(node))
            return None
        if not minimum <= value <= maximum:
            reading.refuse("ORK104", f"{quoted(node.value)} is not between {minimum:,} and {maximum:,}", node)
            return None
        return value

    return read


def duration(*, zero_allowed: bool) -> Reader:
    def read(node: Node, reading: Reading) -> float | None:
        seconds = _seconds(node) if is_scalar(node) else None
        if seconds is None:
            hint = "write seconds, or `500ms`, `90s`, `10m`, `2h`, `1d`"
            shown = quoted(node.value) if is_scalar(node) else "this"
            if node.kind != Kind.BAD:
                reading.refuse("ORK114", f"{shown} is not a duration", node, hint=hint)
            return None
        if seconds < 0 or seconds > MAX_SECONDS or (seconds == 0 and not zero_allowed):
            least = "0" if zero_allowed else "more than 0"
            reading.refuse("ORK114", f"{quoted(node.value)} is not between {least} seconds and 10 years", node)
            return None
        return seconds

    return read


def choice(options: type[Choice]) -> Callable[[Node, Reading], Choice | None]:
    names = [option.value for option in options]

    def read(node: Node, reading: Reading) -> Choice | None:
        text = read_text(node, reading)
        if text is None:
            return None
        if text not in names:
            message = f"{quoted(text)} is not one of {', '.join(names)}"
            reading.refuse("ORK104", message, node, hint=Suggester(names).hint(text))
            return None
        return options(text)

    return read


def items_of(read_item: Reader) -> Reader:
    """A list, or a single value for a list of one."""

    def read(node: Node, reading: Reading) -> tuple[Any, ...] | None:
        if is_scalar(node):
            item = read_item(node, reading)
            return None if item is None else (item,)
        if node.kind != Kind.LIST:
            reading.expected("a list", node)
            return None
        return tuple(item for item in (read_item(child, reading) for child in node.value) if item is not None)

    return read


def entries_of(
    read_name_of: Reader, read_value: Reader, *, nullable: bool = False, null_hint: str | None = None
) -> Reader:
    """A map from names to values, as a tuple of pairs in source order."""

    def read(node: Node, reading: Reading) -> tuple[tuple[str, Any], ...] | None:
        if node.kind != Kind.MAP:
            reading.expected("a map", node)
            return None
        pairs = []
        for key, child in node.pairs():
            name = read_name_of(key, reading)
            if is_null(child) and not nullable:
                reading.expected("a value", child, hint=null_hint)
                continue
            value = read_value(child, reading)
            if name is not None and value is not None:
                pairs.append((name, value))
        return tuple(pairs)

    return read


class NotJsonError(Exception):
    """A constant that is not valid JSON. `node` is its position."""

    def __init__(self, code: str, message: str, node: Node, hint: str | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.node, self.hint = code, message, node, hint


def json_constant(node: Node) -> Any:
    """The JSON value of a node. Depth is bounded by the tree's."""
    if node.kind == Kind.MAP:
        return {key.value: json_constant(child) for key, child in node.pairs()}
    if node.kind == Kind.LIST:
        return [json_constant(child) for child in node.value]
    if node.kind == Kind.BAD:
        return None
    value = scalar_value(node)
    if isinstance(value, float) and not math.isfinite(value):
        raise NotJsonError(
            "ORK113", f"{quoted(node.value)} is not a number JSON can carry", node, "quote it, or use null"
        )
    if isinstance(value, int) and abs(value) > _SAFE_INTEGER:
        raise NotJsonError("ORK113", "the number does not fit into 64 bits", node, "quote it to make it text")
    return value


def _seconds(node: Node) -> float | None:
    value = scalar_value(node)
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value) if math.isfinite(value) and abs(value) < 1e15 else None
    return seconds_of(value) if isinstance(value, str) else None


def seconds_of(text: str) -> float | None:
    """Parse `1h30m` to seconds; None if the text is no duration with a unit."""
    if len(text) > 40 or not _DURATION.fullmatch(text):
        return None
    return round(sum(float(number) * _UNIT_SECONDS[unit] for number, unit in _DURATION_PART.findall(text)), 3)


def _unquote_hint(node: Node) -> str | None:
    return "remove the quotes" if node.kind == Kind.QUOTED and str(node.value).isdigit() else None

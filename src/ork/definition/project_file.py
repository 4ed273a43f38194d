"""`ork.yaml`: what all workflows of a project share. Every key is optional, and so is the file."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from ork.definition.actions import read_path
from ork.definition.keys import Key, Reading, Table
from ork.definition.nodes import Kind, Node, is_null
from ork.definition.problems import Problem
from ork.definition.report import Report
from ork.definition.values import (
    NotJsonError,
    choice,
    entries_of,
    integer,
    is_scalar,
    json_constant,
    read_name,
    read_text,
)
from ork.definition.yaml_tree import parse_yaml

MAX_SLOTS = 1_000_000


class Durability(StrEnum):
    """What an acknowledged write survives: the death of every process, or the loss of power too."""

    NORMAL = "normal"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class Project:
    script_dir: str | None = None
    env_file: str | None = None
    pools: dict[str, int] = field(default_factory=dict)
    max_workers: int | None = None
    executor_limits: dict[str, int] = field(default_factory=dict)
    durability: Durability = Durability.NORMAL
    store: str | None = None
    objects: str | None = None
    alerts: dict[str, Any] = field(default_factory=dict)


def load_project(data: bytes, file: str = "ork.yaml") -> tuple[Project, tuple[Problem, ...]]:
    """The project and every mistake in the file. An empty file is a project without settings."""
    report = Report(file)
    root = parse_yaml(data, report)
    if root is None or is_null(root):
        return Project(), report.problems()
    values = PROJECT_TABLE.read(root, Reading(report)) or {}
    if "executors" in values:
        values["executor_limits"] = values.pop("executors")
    return Project(**values), report.problems()


_read_slots = integer(1, MAX_SLOTS)

POOL_TABLE = Table(
    "a pool",
    (
        Key(
            "slots",
            _read_slots,
            "How many attempts it lets run at once.",
            {"type": "integer", "minimum": 1, "maximum": MAX_SLOTS},
            required=True,
        ),
    ),
)

EXECUTOR_TABLE = Table(
    "an executor's settings",
    (
        Key(
            "max_workers",
            _read_slots,
            "How many attempts it runs at once.",
            {"type": "integer", "minimum": 1, "maximum": MAX_SLOTS},
            required=True,
        ),
    ),
)


def _read_pool(node: Node, reading: Reading) -> int | None:
    return _read_slots(node, reading) if is_scalar(node) else _only_value(POOL_TABLE, node, reading)


def _read_executor_limit(node: Node, reading: Reading) -> int | None:
    return _only_value(EXECUTOR_TABLE, node, reading)


def _only_value(table: Table, node: Node, reading: Reading) -> int | None:
    values = table.read(node, reading)
    if values is None:
        return None
    for name in table.missing(node):
        reading.refuse("ORK102", f"{table.what} needs `{name}`", node)
    return next(iter(values.values()), None)


def _by_name(read_value: Any) -> Any:
    read_pairs = entries_of(read_name, read_value)

    def read(node: Node, reading: Reading) -> dict[str, Any] | None:
        pairs = read_pairs(node, reading)
        return None if pairs is None else dict(pairs)

    return read


def _read_alert(node: Node, reading: Reading) -> Any:
    if node.kind == Kind.LIST:
        reading.expected("a map or text", node)
        return None
    try:
        return json_constant(node)
    except NotJsonError as error:
        reading.refuse(error.code, error.message, error.node, hint=error.hint)
        return None


PROJECT_TABLE = Table(
    "ork.yaml",
    (
        Key("script_dir", read_path, "Where bare script names of commands are looked up.", {"type": "string"}),
        Key("env_file", read_path, "A file of NAME=value lines for secrets. `.env` when left out.", {"type": "string"}),
        Key(
            "pools",
            _by_name(_read_pool),
            "Pools and their slots.",
            {
                "type": "object",
                "propertyNames": {"$ref": "#/$defs/name"},
                "additionalProperties": {"anyOf": [{"type": "integer", "minimum": 1}, {"$ref": "#/$defs/pool"}]},
            },
        ),
        Key(
            "max_workers",
            _read_slots,
            "How many attempts run at once, of all workflows together.",
            {"type": "integer", "minimum": 1, "maximum": MAX_SLOTS},
        ),
        Key(
            "executors",
            _by_name(_read_executor_limit),
            "Settings of executors, by name.",
            {
                "type": "object",
                "propertyNames": {"$ref": "#/$defs/name"},
                "additionalProperties": {"$ref": "#/$defs/executor"},
            },
        ),
        Key(
            "durability",
            choice(Durability),
            "What an acknowledged write survives: normal, the death of every process; full, the loss of power too.",
            {"enum": [option.value for option in Durability]},
        ),
        Key("store", read_text, "The URL of the state store.", {"type": "string"}),
        Key("objects", read_text, "The URL of the object store.", {"type": "string"}),
        Key(
            "alerts",
            _by_name(_read_alert),
            "Who can be told about failures, by the names workflows use.",
            {"type": "object", "propertyNames": {"$ref": "#/$defs/name"}},
        ),
    ),
)

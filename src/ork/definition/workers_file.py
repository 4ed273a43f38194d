"""workers.yaml: worker configs by name, for tasks to name with `worker:`. The one called `default` is for all others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ork.definition.keys import Key, Reading, Table
from ork.definition.nodes import Node, is_null
from ork.definition.problems import Problem, quoted
from ork.definition.quantities import CPU_KEY, MEMORY_KEY
from ork.definition.report import Report, Suggester
from ork.definition.values import (
    choice,
    duration,
    entries_of,
    integer,
    is_scalar,
    items_of,
    read_boolean,
    read_name,
    read_text,
)
from ork.definition.yaml_tree import parse_yaml
from ork.model.infra import Mount, Place, Pull, Resources, WorkerConfig

WORKERS_FILE = "workers.yaml"
DEFAULT = "default"
_MOST_PIDS = 1 << 22
_ONLY_IN = {
    Place.LOCAL: ("timeout", "env"),
    Place.DOCKER: (
        "cpu", "memory", "pids", "timeout", "env", "host", "certificates", "network", "user", "read_only", "pull",
        "volumes",
    ),
    Place.CLOUDRUN: ("cpu", "memory", "timeout", "env", "service_account", "vpc_connector"),
    Place.KUBERNETES: ("cpu", "memory", "timeout", "env", "service_account"),
}  # fmt: skip


def load_workers(data: bytes, file: str = WORKERS_FILE) -> tuple[dict[str, WorkerConfig], tuple[Problem, ...]]:
    """The configs by name, and every mistake in the file. An empty file has none."""
    report = Report(file)
    root = parse_yaml(data, report)
    if root is None or is_null(root):
        return {}, report.problems()
    reading = Reading(report)
    pairs = entries_of(read_name, _read_config)(root, reading) or ()
    found = {name: made for name, made in pairs if isinstance(made, dict)}
    configs = {name: _config(name, values) for name, values in found.items()}
    standing_in = dict(pairs).get(DEFAULT)
    if isinstance(standing_in, str):
        if standing_in in configs:
            configs[DEFAULT] = _config(DEFAULT, found[standing_in])
        else:
            hint = Suggester(configs).hint(standing_in) or "name one of the configs in this file"
            reading.refuse("ORK606", f"there is no worker config {quoted(standing_in)}", _place(root), hint=hint)
    return configs, report.problems()


def _place(root: Node) -> Node:
    return root.get(DEFAULT) or root


def _read_config(node: Node, reading: Reading) -> dict[str, Any] | str | None:
    """Its values; or the name of another config, which only `default` may be."""
    if is_scalar(node):
        return read_name(node, reading)
    values = WORKER_TABLE.read(node, reading)
    if values is None:
        return None
    for name in WORKER_TABLE.missing(node):
        reading.refuse("ORK102", f"{WORKER_TABLE.what} needs `{name}`", node)
    if "where" in values:
        _refuse_elsewhere(values, node, reading)
    return values if "where" in values else None


def _refuse_elsewhere(values: Mapping[str, Any], node: Node, reading: Reading) -> None:
    place = values["where"]
    for name in values:
        if name != "where" and name not in _ONLY_IN[place]:
            hint = f"known there: {', '.join(_ONLY_IN[place])}"
            reading.refuse("ORK608", f"`{name}` means nothing where: {place}", node.get(name) or node, hint=hint)


def _read_mount(node: Node, reading: Reading) -> Mount | None:
    """`source:target` or `source:target:ro`: a folder of the engine's machine, or a named volume."""
    text = read_text(node, reading)
    if text is None:
        return None
    source, _, rest = text.partition(":")
    target, _, mode = rest.partition(":")
    if not source or not target.startswith("/") or mode not in ("", "ro", "rw") or source.startswith("."):
        hint = "write /folder:/where, name:/where or /folder:/where:ro"
        reading.refuse("ORK608", f"{quoted(text)} is no volume", node, hint=hint)
        return None
    return Mount(source, target, mode == "ro")


def _config(name: str, values: Mapping[str, Any]) -> WorkerConfig:
    rest = {key: value for key, value in values.items() if key not in ("cpu", "memory")}
    return WorkerConfig(name, resources=Resources(values.get("cpu"), values.get("memory")), **rest)


_TEXT = {"type": "string"}

WORKER_TABLE = Table(
    "a worker config",
    (
        Key(
            "where",
            choice(Place),
            "What runs it: local, docker, cloudrun, kubernetes.",
            {"enum": [place.value for place in Place]},
            required=True,
        ),
        CPU_KEY,
        MEMORY_KEY,
        Key(
            "pids",
            integer(1, _MOST_PIDS),
            "How many processes and threads it may have.",
            {"type": "integer", "minimum": 1},
        ),
        Key(
            "timeout",
            duration(zero_allowed=False),
            "How long an attempt may run at most, whatever the task says.",
            {"type": ["number", "string"]},
        ),
        Key(
            "env",
            entries_of(read_text, read_text),
            "Environment variables; a task's own go before them.",
            {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}},
        ),
        Key("host", read_text, "The engine's address: unix:///path or tcp://host:port.", _TEXT),
        Key("certificates", read_text, "A folder with ca.pem, cert.pem and key.pem for an engine behind TLS.", _TEXT),
        Key("network", read_text, "none, host, bridge, or the name of one of the engine's networks.", _TEXT),
        Key("user", read_text, "The user (and group) its processes run as: `1000`, `app`, `1000:1000`.", _TEXT),
        Key("read_only", read_boolean, "Whether the image's own files cannot be written to.", {"type": "boolean"}),
        Key(
            "pull",
            choice(Pull),
            "When an image is asked for at its registry: missing, always, never.",
            {"enum": [option.value for option in Pull]},
        ),
        Key(
            "volumes",
            items_of(_read_mount),
            "Folders of the engine's machine and named volumes: `/folder:/where:ro`.",
            {"type": "array", "items": _TEXT},
        ),
        Key("service_account", read_text, "The account its processes act as.", _TEXT),
        Key("vpc_connector", read_text, "The connector to a private network.", _TEXT),
    ),
)

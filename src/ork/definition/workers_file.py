"""workers.yaml: worker configs by name, which tasks select with `worker:`. The config `default` is for all other tasks.

Configs are at the top level, or under `workers:` next to `default: NAME`. A config without `where` runs a task where
the installation runs such tasks. A mistake in one config does not affect the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ork.definition.containers import read_image
from ork.definition.keys import Key, KeyTable, Reading
from ork.definition.nodes import Kind, Node, is_null
from ork.definition.pod_keys import POD_KEYS, refuse_on_kubernetes
from ork.definition.problems import Problem, quoted
from ork.definition.quantities import CPU_KEY, MEMORY_KEY
from ork.definition.report import ProblemReport, Suggester
from ork.definition.values import (
    choice,
    duration,
    entries_of,
    integer,
    is_scalar,
    items_of,
    read_boolean,
    read_cloud_name,
    read_name,
    read_text,
)
from ork.definition.yaml_tree import parse_yaml
from ork.model.cloud_run import Gpu, size_problem
from ork.model.infra import Mount, Pull, Resources, Where, WorkerConfig
from ork.model.kubernetes import PodSettings
from ork.model.record import Record, made

WORKERS_FILE = "workers.yaml"
DEFAULT = "default"
WRAPPER = "workers"
_MAX_PIDS = 1 << 22
_CAPABILITY = re.compile(r"[A-Z][A-Z_]{1,40}")
_ONLY_IN = {
    Where.LOCAL: ("cpu", "memory", "timeout", "env"),
    Where.DOCKER: (
        "cpu", "memory", "pids", "timeout", "env", "host", "certificates", "network", "user", "read_only", "pull",
        "volumes", "capabilities", "new_privileges",
    ),
    Where.CLOUDRUN: (
        "cpu", "memory", "timeout", "env", "image", "service_account", "vpc_connector", "network", "subnet", "gpu",
        "project", "region",
    ),
    Where.KUBERNETES: (
        "cpu", "memory", "timeout", "env", "image", "user", "read_only", "pull", "service_account", "gpu",
        *(key.name for key in POD_KEYS),
    ),
}  # fmt: skip
ALL = "*"  # all names, in `Workers.broken`


class Workers(Record):
    """The content of workers.yaml. `broken` has the first problem of each unusable config by name; `ALL` is set if the
    whole file is unreadable."""

    configs: dict[str, WorkerConfig] = made(default_factory=dict)
    broken: dict[str, str] = made(default_factory=dict)
    problems: tuple[Problem, ...] = ()


def load_workers(data: bytes, file: str = WORKERS_FILE) -> tuple[dict[str, WorkerConfig], tuple[Problem, ...]]:
    """The usable configs by name, and all problems in the file. An empty file has no configs."""
    workers = read_workers(data, file)
    return workers.configs, workers.problems


def read_workers(data: bytes, file: str = WORKERS_FILE) -> Workers:
    report = ProblemReport(file)
    root = parse_yaml(data, report)
    if root is None:
        return Workers(broken=_all_broken(data, report.problems()), problems=report.problems())
    if is_null(root):
        return Workers(problems=report.problems())
    if root.kind != Kind.MAP:
        Reading(report).expected("a map of worker configs", root)
        return Workers(broken=_all_broken(data, report.problems()), problems=report.problems())
    return _Read(root, report).workers()


def _all_broken(data: bytes, problems: tuple[Problem, ...]) -> dict[str, str]:
    """Tasks without a worker config are unaffected if there is certainly no default."""
    why = _sentence(problems[0]) if problems else "it cannot be read"
    return {ALL: why, DEFAULT: why} if DEFAULT.encode() in data else {ALL: why}


def _sentence(problem: Problem) -> str:
    return f"{problem.message} ({problem.position})"


class _Read:
    """One pass over the file: values of each config, and which of them have problems."""

    def __init__(self, root: Node, report: ProblemReport) -> None:
        self._root = root
        self._report = report
        self._values: dict[str, dict[str, Any]] = {}
        self._broken: dict[str, str] = {}

    def workers(self) -> Workers:
        default: Node | None = None
        for key, node in self._entries():
            if key.value == DEFAULT and is_scalar(node) and not is_null(node):
                default = node
            else:
                self._add(key, node)
        configs = {name: _config(name, values) for name, values in self._values.items() if name not in self._broken}
        if default is not None:
            self._use_default(default, configs)
        return Workers(configs, self._broken, self._report.problems())

    def _entries(self) -> Iterator[tuple[Node, Node]]:
        """Names and configs, at the top level or under `workers:`."""
        wrapped = self._root.get(WRAPPER)
        if wrapped is None or _is_config(wrapped):
            yield from self._root.pairs()
            return
        for key, node in self._root.pairs():
            if key.value == WRAPPER:
                if node.kind == Kind.MAP:
                    yield from node.pairs()
                elif not is_null(node):
                    Reading(self._report).expected("a map of worker configs", node)
            elif key.value == DEFAULT:
                yield key, node
            else:
                message = f"{quoted(key.value)} is not allowed next to `{WRAPPER}`"
                hint = f"move it below `{WRAPPER}`; only `{DEFAULT}` may stand beside it"
                Reading(self._report).refuse("ORK101", message, key, hint=hint)

    def _add(self, key: Node, node: Node) -> None:
        reading = Reading(ProblemReport(self._report.file, self._report.text))
        name = read_name(key, reading)
        if name is not None and name in self._values:
            reading.refuse("ORK606", f"duplicate worker config {quoted(name)}", key)
        values = _read_config(node, reading)
        for problem in reading.report.problems():
            self._report.add_problem(problem)
            self._broken.setdefault(name or key.value, _sentence(problem))
        if name is not None and values is not None:
            self._values[name] = values

    def _use_default(self, node: Node, configs: dict[str, WorkerConfig]) -> None:
        name = node.value
        if name in self._broken:
            self._broken[DEFAULT] = self._broken[name]
        elif name not in configs:
            hint = Suggester(configs).hint(name) or "name one of the configs in this file"
            self._report.add("ORK606", f"there is no worker config {quoted(name)}", node, hint=hint)
            self._broken[DEFAULT] = f"`{DEFAULT}` names {quoted(name)}, which is not in workers.yaml"
        else:
            configs[DEFAULT] = _config(DEFAULT, self._values[name])


def _is_config(node: Node) -> bool:
    """True if this is a single config rather than a map of them: one of its values is a scalar or a list."""
    return node.kind == Kind.MAP and any(
        key.value in WORKER_TABLE.by_name and value.kind != Kind.MAP for key, value in node.pairs()
    )


def _read_config(node: Node, reading: Reading) -> dict[str, Any] | None:
    if is_null(node):
        reading.expected("a worker config as a map of keys", node)
        return None
    values = WORKER_TABLE.read(node, reading)
    if values is not None and "where" in values:
        _refuse_elsewhere(values, node, reading)
    return values


def _refuse_elsewhere(values: Mapping[str, Any], node: Node, reading: Reading) -> None:
    place = values["where"]
    for name in values:
        if name != "where" and name not in _ONLY_IN[place]:
            hint = f"known there: {', '.join(_ONLY_IN[place])}"
            reading.refuse("ORK608", f"`{name}` has no effect with `where: {place}`", node.get(name) or node, hint=hint)
    if place is Where.KUBERNETES:
        refuse_on_kubernetes(values, node, reading)
    if place is not Where.CLOUDRUN:
        return
    _check_gpu(values, node, reading)
    problem = size_problem(values.get("cpu"), values.get("memory"))
    if problem is not None:
        at = node.get("memory") if "memory" in problem else node.get("cpu")
        reading.refuse("ORK608", problem, at or node, hint="see docs/cloud-run.md for the sizes it offers")


def _check_gpu(values: Mapping[str, Any], node: Node, reading: Reading) -> None:
    """An accelerator of Cloud Run is named by its type."""
    if values.get("gpu") in (None, *Gpu):
        return
    hint = f"one of: {', '.join(Gpu)}"
    reading.refuse(
        "ORK104", f"{quoted(values['gpu'])} is not an accelerator of Cloud Run", node.get("gpu") or node, hint=hint
    )


def _read_mount(node: Node, reading: Reading) -> Mount | None:
    """`source:target` or `source:target:ro`: a folder of the engine's host, or a named volume."""
    text = read_text(node, reading)
    if text is None:
        return None
    source, _, rest = text.partition(":")
    target, _, mode = rest.partition(":")
    if not source or not target.startswith("/") or mode not in ("", "ro", "rw") or source.startswith("."):
        hint = "write /folder:/where, name:/where or /folder:/where:ro"
        reading.refuse("ORK608", f"{quoted(text)} is not a volume", node, hint=hint)
        return None
    return Mount(source, target, mode == "ro")


def _config(name: str, values: Mapping[str, Any]) -> WorkerConfig:
    of_pod = {key.name for key in POD_KEYS}
    rest = {key: value for key, value in values.items() if key not in ("cpu", "memory", *of_pod)}
    resources = Resources(values.get("cpu"), values.get("memory"))
    pod = PodSettings(**{key: value for key, value in values.items() if key in of_pod})
    return WorkerConfig(name, **{"where": None, **rest}, resources=resources, pod=pod)


def _read_capability(node: Node, reading: Reading) -> str | None:
    text = read_text(node, reading)
    if text is None:
        return None
    name = text.upper().removeprefix("CAP_")
    if not _CAPABILITY.fullmatch(name):
        hint = "write it as capabilities(7) does, without CAP_: NET_BIND_SERVICE, or ALL"
        reading.refuse("ORK608", f"{quoted(text)} is not a capability", node, hint=hint)
        return None
    return name


_TEXT = {"type": "string"}

WORKER_TABLE = KeyTable(
    "a worker config",
    (
        Key(
            "where",
            choice(Where),
            "What runs it: local, docker, cloudrun, kubernetes. Default: where the installation runs such tasks.",
            {"enum": [place.value for place in Where]},
        ),
        CPU_KEY,
        MEMORY_KEY,
        Key(
            "pids",
            integer(1, _MAX_PIDS),
            "Maximum number of processes and threads. Default in a container: 4096.",
            {"type": "integer", "minimum": 1},
        ),
        Key(
            "timeout",
            duration(zero_allowed=False),
            "Maximum run time of an attempt, whatever the task's own timeout.",
            {"type": ["number", "string"]},
        ),
        Key(
            "env",
            entries_of(read_text, read_text),
            "Environment variables; those of a task take precedence.",
            {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}},
        ),
        Key("host", read_text, "The engine's address: unix:///path or tcp://host:port.", _TEXT),
        Key("certificates", read_text, "A folder with ca.pem, cert.pem and key.pem for an engine behind TLS.", _TEXT),
        Key("network", read_text, "none, host, bridge, or the name of one of the engine's networks.", _TEXT),
        Key("user", read_text, "The user (and group) its processes run as: `1000`, `app`, `1000:1000`.", _TEXT),
        Key(
            "read_only",
            read_boolean,
            "Whether the root file system of the container is read-only.",
            {"type": "boolean"},
        ),
        Key(
            "pull",
            choice(Pull),
            "When an image is pulled: missing, always, never.",
            {"enum": [option.value for option in Pull]},
        ),
        Key(
            "volumes",
            items_of(_read_mount),
            "Folders of the engine's machine and named volumes: `/folder:/where:ro`.",
            {"type": "array", "items": _TEXT},
        ),
        Key(
            "capabilities",
            items_of(_read_capability),
            "Linux capabilities of its processes: `[NET_BIND_SERVICE]`. Default: none.",
            {"type": "array", "items": _TEXT},
        ),
        Key(
            "new_privileges",
            read_boolean,
            "Whether its processes may gain privileges, by sudo or setuid programs. Default: no.",
            {"type": "boolean"},
        ),
        Key(
            "image",
            read_image,
            "The image of tasks that name none, with the project's files in its working directory.",
            _TEXT,
        ),
        Key("service_account", read_text, "The service account of its processes.", _TEXT),
        Key("vpc_connector", read_text, "The connector to a private network.", _TEXT),
        Key("subnet", read_text, "With `network` on Cloud Run: the subnetwork of its tasks.", _TEXT),
        Key(
            "gpu",
            read_text,
            "On Cloud Run: one accelerator of this type. On Kubernetes: their number, `2`, or `RESOURCE=NUMBER`.",
            {"type": ["string", "integer"]},
        ),
        Key("project", read_cloud_name, "On Cloud Run: the project. Default: `gcp` in ork.yaml.", _TEXT),
        Key("region", read_cloud_name, "On Cloud Run: the region. Default: `gcp` in ork.yaml.", _TEXT),
        *POD_KEYS,
    ),
)

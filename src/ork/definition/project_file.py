"""`ork.yaml`: settings shared by all workflows of a project. The file and all its keys are optional."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ork.definition.actions import read_path
from ork.definition.alarm_key import ALARM_SCHEMA, read_alarm
from ork.definition.custom import check_executor, custom_executors_of, read_class, read_shared_config
from ork.definition.keys import Key, KeyTable, Reading
from ork.definition.nodes import Kind, Node, is_null
from ork.definition.pod_keys import read_kubernetes
from ork.definition.problems import Problem, quoted
from ork.definition.project import Durability, Project
from ork.definition.rates import RATE_SCHEMA, read_rate
from ork.definition.report import ProblemReport
from ork.definition.secrets_key import read_outbound, read_secrets, refuse_allow_private
from ork.definition.values import (
    NotJsonError,
    choice,
    entries_of,
    integer,
    is_scalar,
    items_of,
    json_constant,
    read_boolean,
    read_cloud_name,
    read_name,
    read_text,
)
from ork.definition.variables import PASS_ENV_SCHEMA, read_pass_env
from ork.definition.yaml_tree import parse_yaml
from ork.model.cloud_run import Place
from ork.model.infra import Where
from ork.model.value_reference import CODECS
from ork.model.workflow import Isolation

if TYPE_CHECKING:
    from ork.model.publishing import PublishConfig
    from ork.model.sign_in import OidcConfig

MAX_SLOTS = 1_000_000


def _read_preload(node: Node, reading: Reading) -> tuple[str, ...] | None:
    """No modules for `none`."""
    names: tuple[str, ...] | None = items_of(read_text)(node, reading)
    if names is None or names == ("none",):
        return None if names is None else ()
    if not all(part.isidentifier() for name in names for part in name.split(".")):
        reading.expected("`none` or a list of module names", node)
        return None
    return names


def load_project(data: bytes, file: str = "ork.yaml") -> tuple[Project, tuple[Problem, ...]]:
    """The project, and all problems in the file. An empty file is a project with default settings."""
    report = ProblemReport(file)
    root = parse_yaml(data, report)
    if root is None or is_null(root):
        return Project(alerts={}), report.problems()
    values = PROJECT_TABLE.read(root, Reading(report)) or {}
    pools = values.pop("pools", {})
    values["pools"] = {name: pool["slots"] for name, pool in pools.items()}
    values["pool_rates"] = {name: pool["rate"] for name, pool in pools.items() if "rate" in pool}
    executors = values.pop("executors", {})
    values["executor_limits"] = {
        name: entry["max_workers"] for name, entry in executors.items() if "max_workers" in entry
    }
    values["executors"] = custom_executors_of(executors)
    values.setdefault("alerts", {})
    return Project(**values), report.problems()


_CLASS = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_read_slots = integer(1, MAX_SLOTS)

POOL_TABLE = KeyTable(
    "a pool",
    (
        Key(
            "slots",
            _read_slots,
            "Maximum number of attempts at once.",
            {"type": "integer", "minimum": 1, "maximum": MAX_SLOTS},
            required=True,
        ),
        Key("rate", read_rate, "Maximum rate of starts: `10/s`, `100/m`, `1000/h`.", RATE_SCHEMA),
    ),
)

EXECUTOR_TABLE = KeyTable(
    "an executor's settings",
    (
        Key("class", read_class, "Its class, as `package.module:Class`; or `http` or `sql`.", {"type": "string"}),
        Key(
            "config",
            read_shared_config,
            "The config of its class, shared by all its tasks. Values may be {secret: NAME}.",
            {"type": "object"},
        ),
        Key(
            "max_workers",
            _read_slots,
            "Maximum number of attempts at once.",
            {"type": "integer", "minimum": 1, "maximum": MAX_SLOTS},
        ),
    ),
)


def _read_pool(node: Node, reading: Reading) -> dict[str, Any] | None:
    """`slots`, and optionally `rate`; a number is the slots."""
    if is_scalar(node):
        slots = _read_slots(node, reading)
        return None if slots is None else {"slots": slots}
    values = POOL_TABLE.read(node, reading)
    if values is None:
        return None
    for name in POOL_TABLE.missing(node):
        reading.refuse("ORK102", f"{POOL_TABLE.what} needs `{name}`", node)
    return values if "slots" in values else None


def _read_executors(node: Node, reading: Reading) -> dict[str, dict[str, Any]] | None:
    found: dict[str, dict[str, Any]] | None = _by_name(EXECUTOR_TABLE.read)(node, reading)
    for key, child in node.pairs() if found is not None else ():
        if key.value in (found or {}):
            check_executor(key.value, (found or {})[key.value], child, reading)
    return found


def _by_name(read_value: Any) -> Any:
    read_pairs = entries_of(read_name, read_value)

    def read(node: Node, reading: Reading) -> dict[str, Any] | None:
        pairs = read_pairs(node, reading)
        return None if pairs is None else dict(pairs)

    return read


def _read_codec(node: Node, reading: Reading) -> str | None:
    text = read_text(node, reading)
    if text is not None and not _CLASS.fullmatch(text):
        reading.refuse("ORK104", f"{quoted(text)} cannot be a class", node, hint="write `package.module:Class`")
        return None
    return text


def _read_codecs(node: Node, reading: Reading) -> dict[str, str] | None:
    found: dict[str, str] | None = _by_name(_read_codec)(node, reading)
    for key, _ in node.pairs() if found is not None else ():
        if key.value in CODECS:
            reading.refuse("ORK104", f"{quoted(key.value)} is the name of one of Ork's own codecs", key)
    return found


def _read_folder(node: Node, reading: Reading) -> str | None:
    text = read_text(node, reading)
    if text is not None and (not text.strip() or "\n" in text):
        reading.refuse("ORK104", f"{quoted(text)} cannot be a folder", node)
        return None
    return text if text is None else text.rstrip("/") or "/"


def _read_network(node: Node, reading: Reading) -> str | None:
    """An IP address or a network, as text."""
    text = read_text(node, reading)
    if text is None:
        return None
    from ipaddress import ip_network

    try:
        return str(ip_network(text, strict=False))
    except ValueError:
        reading.expected("an IP address or a network", node, hint="write 10.0.0.7 or 10.0.0.0/8")
        return None


def _read_alert(node: Node, reading: Reading) -> Any:
    if node.kind == Kind.LIST:
        reading.expected("a map or text", node)
        return None
    try:
        return json_constant(node)
    except NotJsonError as error:
        reading.refuse(error.code, error.message, error.node, hint=error.hint)
        return None


GCP_TABLE = KeyTable(
    "`gcp`",
    (
        Key("project", read_cloud_name, "The id of the Google Cloud project.", {"type": "string"}, required=True),
        Key("region", read_cloud_name, "The region, such as `europe-west1`.", {"type": "string"}, required=True),
    ),
)


def _read_gcp(node: Node, reading: Reading) -> Place | None:
    values = GCP_TABLE.read(node, reading)
    if values is None:
        return None
    for name in GCP_TABLE.missing(node):
        reading.refuse(
            "ORK102", f"{GCP_TABLE.what} needs `{name}`", node, hint="gcp: {project: ID, region: europe-west1}"
        )
    return Place(values["project"], values["region"]) if len(values) == len(GCP_TABLE.keys) else None


def _read_sign_in(node: Node, reading: Reading) -> OidcConfig | None:
    from ork.definition.sign_in_key import read_sign_in

    return read_sign_in(node, reading)


def _read_ui(node: Node, reading: Reading) -> PublishConfig | None:
    from ork.definition.ui_key import read_ui

    return read_ui(node, reading)


PROJECT_TABLE = KeyTable(
    "ork.yaml",
    (
        Key(
            "pythonpath",
            items_of(_read_folder),
            "Folders that Python tasks import from, after the workflow's and the project's own, such as `src`.",
            {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
        ),
        Key(
            "codecs",
            _read_codecs,
            "Classes that store values of the project's own types, by the name that is stored with a value.",
            {
                "type": "object",
                "propertyNames": {"$ref": "#/$defs/name"},
                "additionalProperties": {"type": "string", "pattern": "^[^:]+:[^:]+$"},
            },
        ),
        Key(
            "script_dir",
            read_path,
            "The folder in which bare script names of commands are looked up.",
            {"type": "string"},
        ),
        Key("env_file", read_path, "A file of NAME=value lines with secrets. Default: `.env`.", {"type": "string"}),
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
            "Maximum number of attempts at once, across all workflows.",
            {"type": "integer", "minimum": 1, "maximum": MAX_SLOTS},
        ),
        Key(
            "executors",
            _read_executors,
            "Executors by name: class of a custom executor, its config, maximum number of attempts at once.",
            {
                "type": "object",
                "propertyNames": {"$ref": "#/$defs/name"},
                "additionalProperties": {"$ref": "#/$defs/executor"},
            },
        ),
        Key(
            "durability",
            choice(Durability),
            "What a committed write survives: normal, the death of every process; full, also a power failure.",
            {"enum": [option.value for option in Durability]},
        ),
        Key(
            "isolation",
            choice(Isolation),
            "How processes of tasks are created by default: fork, or interpreter.",
            {"enum": [option.value for option in Isolation]},
        ),
        Key(
            "preload",
            _read_preload,
            "Installed modules to import once for all tasks, or none. Default: those that tasks were seen to import.",
            {"anyOf": [{"const": "none"}, {"type": "array", "items": {"type": "string"}}]},
        ),
        Key(
            "task_user",
            read_text,
            "The user that local tasks run as, by name or number. Default: the user of the scheduler.",
            {"type": ["string", "integer"]},
        ),
        Key(
            "pass_env",
            read_pass_env,
            "Environment variables of the scheduler that local tasks inherit, besides PATH, HOME and the like: `[AWS_*]`.",
            PASS_ENV_SCHEMA,
        ),
        Key(
            "default_where",
            choice(Where),
            "Where tasks run whose worker config has no `where`: local, docker, cloudrun, kubernetes.",
            {"enum": [place.value for place in Where]},
        ),
        Key(
            "gcp",
            _read_gcp,
            "The Google Cloud project and region of tasks on Cloud Run.",
            {"$ref": "#/$defs/gcp"},
        ),
        Key(
            "kubernetes",
            read_kubernetes,
            "The namespace and context of tasks on Kubernetes, and the image that brings the worker.",
            {"$ref": "#/$defs/kubernetes"},
        ),
        Key(
            "prices",
            read_path,
            "A file of prices that replace those of Ork, for `ork cost` and budgets.",
            {"type": "string"},
        ),
        Key("store", read_text, "The URL of the state store.", {"type": "string"}),
        Key("objects", read_text, "The URL of the object store.", {"type": "string"}),
        Key(
            "alerts",
            _by_name(_read_alert),
            "Alert targets by name.",
            {"type": "object", "propertyNames": {"$ref": "#/$defs/name"}},
        ),
        Key(
            "alerts_allow_private",
            refuse_allow_private,
            "Replaced by `outbound`.",
            {"deprecated": True},
        ),
        Key(
            "secrets",
            read_secrets,
            "The secrets that workflows may use: the source of each, and its workflows.",
            {
                "type": "object",
                "propertyNames": {"$ref": "#/$defs/name"},
                "additionalProperties": {"$ref": "#/$defs/secret"},
            },
        ),
        Key(
            "outbound",
            read_outbound,
            "Non-public addresses that jobs and alerts may connect to.",
            {"$ref": "#/$defs/outbound"},
        ),
        Key(
            "wake_url",
            read_text,
            "The URL a worker calls when its task has ended, to wake a control plane that is scaled to zero.",
            {"type": "string"},
        ),
        Key(
            "alarm",
            read_alarm,
            "Who calls a tick when something is due while no scheduler runs: `none`, `systemd`, or a queue of `cloud_tasks`.",
            ALARM_SCHEMA,
        ),
        Key(
            "traces",
            read_boolean,
            "Whether runs are exported as OpenTelemetry traces; the OTEL_ variables set the endpoint.",
            {"type": "boolean"},
        ),
        Key(
            "trusted_proxies",
            items_of(_read_network),
            "Addresses of the reverse proxies in front of `ork serve` whose X-Forwarded-* headers are trusted.",
            {"type": "array", "items": {"type": "string"}},
        ),
        Key(
            "sign_in",
            _read_sign_in,
            "How people sign in to the web UI, besides tokens: single sign-on through a provider of OpenID Connect.",
            {"$ref": "#/$defs/sign_in"},
        ),
        Key(
            "ui",
            _read_ui,
            "The web UI: where its pages are published, so that they can be read while nothing runs.",
            {"$ref": "#/$defs/ui"},
        ),
    ),
)

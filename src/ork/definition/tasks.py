"""Parses one task. The table below lists its keys; those of a fan-out stand before it."""

from __future__ import annotations

from typing import Any, NamedTuple

from ork.definition.actions import (
    ACTION_KEYS,
    read_command,
    read_executor,
    read_function,
    read_job,
    read_module,
    read_path,
    resolve_action,
)
from ork.definition.approvals import APPROVAL_SCHEMA, read_approval
from ork.definition.bindings import read_argument, read_path_text, read_value, read_variable_value
from ork.definition.conditions import WHEN_KEY
from ork.definition.containers import CONTAINER_KEYS, WORKER_KEY
from ork.definition.custom import read_config
from ork.definition.environments import ENVIRONMENT_KEY
from ork.definition.keys import Key, KeyTable, Reading
from ork.definition.nodes import Kind, Node, scalar_value
from ork.definition.problems import quoted
from ork.definition.rates import RATE_SCHEMA, read_rate
from ork.definition.types import TYPE_KEYS
from ork.definition.values import choice, duration, entries_of, integer, is_scalar, items_of, read_name, read_text
from ork.model.workflow import Approval, Command, Const, Isolation, OnUnreachable, Ref, RetryOn, RunIf, TaskSpec

MAX_INSTANCES = 100_000

_read_count = integer(1, MAX_INSTANCES)


def _read_parallel(node: Node, reading: Reading) -> int | Ref | None:
    """A number, or a reference to one."""
    if is_scalar(node):
        is_path = isinstance(scalar_value(node), str) and not str(node.value).isdigit()
        return read_path_text(node, reading) if is_path else _read_count(node, reading)
    found = read_value(node, reading)
    if found is None or isinstance(found, Ref):
        return found
    reading.expected("a whole number or a path to one", node)
    return None


def _read_foreach(node: Node, reading: Reading) -> Const | Ref | None:
    """A list, or a reference to one."""
    if is_scalar(node) and isinstance(scalar_value(node), str):
        return read_path_text(node, reading)
    found = read_value(node, reading)
    if found is None or isinstance(found, Ref):
        return found
    if not isinstance(found, Const) or not isinstance(found.value, list):
        reading.expected("a list or a path to one", node, hint="such as `[a, b]` or `tasks.extract.output.files`")
        return None
    if len(found.value) > MAX_INSTANCES:
        message = f"{len(found.value):,} items are more than {MAX_INSTANCES:,}"
        reading.refuse("ORK104", message, node, hint="let each instance work on a batch of them")
        return None
    return found


_COUNT = {"type": "integer", "minimum": 1, "maximum": MAX_INSTANCES}

FAN_OUT_KEYS = (
    Key(
        "parallel",
        _read_parallel,
        "Number of instances: a number, or a reference to one.",
        {"anyOf": [_COUNT, {"$ref": "#/$defs/path"}]},
    ),
    Key(
        "foreach",
        _read_foreach,
        "One instance for each item: a list, or a reference to one. The function gets the item as `item`.",
        {"anyOf": [{"type": "array", "maxItems": MAX_INSTANCES}, {"$ref": "#/$defs/path"}]},
    ),
    Key("concurrency", _read_count, "Maximum number of instances at once.", _COUNT),
)


def check_fan_out(values: dict[str, Any], key: Node, body: Node, reading: Reading) -> None:
    """Report `concurrency` without a fan-out, where it has no effect."""
    is_written = any(body.get(name) is not None for name in ("parallel", "foreach"))
    if "concurrency" in values and not is_written and body.kind == Kind.MAP:
        message = f"task {quoted(key.value)} has `concurrency`, but no `foreach` or `parallel`"
        hint = "add `foreach:` or `parallel:`; across tasks, use a `pool`"
        reading.refuse("ORK120", message, body.get("concurrency") or key, hint=hint)


_DURATION = {"type": ["number", "string"], "pattern": r"^(\d+(\.\d+)?(ms|[smhd]))+$", "minimum": 0}
_NAMES = {"anyOf": [{"$ref": "#/$defs/name"}, {"type": "array", "items": {"$ref": "#/$defs/name"}}]}
_RETRY_ON = [option.value for option in RetryOn]
_VALUES = {"type": "object", "additionalProperties": {"$ref": "#/$defs/value"}}


def _read_variable(node: Node, reading: Reading) -> str | None:
    text = read_text(node, reading)
    if text is not None and (not text or "=" in text or not text.isprintable()):
        reading.refuse("ORK105", f"{quoted(text)} cannot be the name of a variable", node)
        return None
    return text


def _read_retry_on(node: Node, reading: Reading) -> frozenset[RetryOn] | None:
    found = items_of(choice(RetryOn))(node, reading)
    return None if found is None else frozenset(found)


_EXECUTOR = Key(
    "executor",
    read_executor,
    "The executor. Default: derived from `file`, `module`, `command` or `image`.",
    {"type": "string"},
)

# Keys that `defaults` may set for all tasks.
SHARED_KEYS = (
    _EXECUTOR,
    Key(
        "env",
        entries_of(_read_variable, read_variable_value, null_hint="write '' for an empty variable"),
        "Environment variables: text, {ref: …} or {secret: …}.",
        _VALUES,
    ),
    Key(
        "retries",
        integer(0, 1000),
        "Maximum number of retries.",
        {"type": "integer", "minimum": 0, "maximum": 1000},
    ),
    Key(
        "retry_delay",
        duration(zero_allowed=True),
        "Fixed delay before a retry. Default: 1, 2, 4 … 60 seconds.",
        _DURATION,
    ),
    Key(
        "retry_on",
        _read_retry_on,
        "Which failures are retried: exit, lost, timeout. Default: exit and lost.",
        {"anyOf": [{"enum": _RETRY_ON}, {"type": "array", "items": {"enum": _RETRY_ON}}]},
    ),
    Key(
        "on_unreachable",
        choice(OnUnreachable),
        "What to do when its machine does not answer: retry (default), fail, or wait.",
        {"enum": [option.value for option in OnUnreachable]},
    ),
    Key("timeout", duration(zero_allowed=False), "Maximum run time of one attempt.", _DURATION),
    ENVIRONMENT_KEY,
    Key(
        "isolation",
        choice(Isolation),
        "How its process is created: fork, from a small server; or interpreter, a new one. Default: the setting in `ork.yaml`.",
        {"enum": [option.value for option in Isolation]},
    ),
    WORKER_KEY,
    Key("pool", read_name, "The pool whose slots it takes.", {"$ref": "#/$defs/name"}),
    Key(
        "priority",
        integer(-1_000_000, 1_000_000),
        "Tasks with a higher priority start first when a limit is reached.",
        {"type": "integer", "minimum": -1_000_000, "maximum": 1_000_000},
    ),
)

_SYNONYMS = {
    **dict.fromkeys(("run", "cmd", "bash", "shell", "script", "exec"), "command"),
    **dict.fromkeys(("needs", "after", "requires", "upstream", "dependencies"), "depends_on"),
    **dict.fromkeys(("retry", "max_retries"), "retries"),
    "if": "when",
    "environ": "env",
    "variables": "env",
    "docker": "image",
    "container": "image",
}

TASK_TABLE = KeyTable(
    "a task",
    (
        Key(
            "file",
            read_path,
            "A Python file, or a script to run, relative to this file's folder; /tasks/a.py: to the project's.",
            {"type": "string"},
        ),
        Key("module", read_module, "An importable Python module, instead of a file.", {"type": "string"}),
        Key("function", read_function, "The function to call. Default: `main`.", {"type": "string"}),
        Key(
            "command",
            read_command,
            "A program and its arguments: a list, or text split into words.",
            {"anyOf": [{"type": "string"}, {"type": "array", "items": {"$ref": "#/$defs/value"}, "minItems": 1}]},
        ),
        Key(
            "args",
            items_of(read_argument),
            "Arguments of a Rust program or a Cloud Run Job: text, {ref: …}.",
            {"type": "array", "items": {"$ref": "#/$defs/value"}},
        ),
        Key("notebook", read_path, "A Jupyter notebook; `inputs` are its parameters.", {"type": "string"}),
        Key("job", read_job, "With `executor: cloudrun`: a Cloud Run Job that exists.", {"type": "string"}),
        Key(
            "workflow",
            read_name,
            "Another workflow to run, with the inputs as its params.",
            {"$ref": "#/$defs/name"},
        ),
        Key(
            "approval",
            read_approval,
            "A question to a person, who decides with `ork approve` or `ork reject`. Nothing runs meanwhile.",
            APPROVAL_SCHEMA,
        ),
        Key(
            "config",
            read_config,
            "The config of a task with a custom executor. Values may be {ref: path} or {secret: name} at any depth.",
            {"type": "object"},
        ),
        Key(
            "config_file",
            read_path,
            "A YAML or JSON file with further config. Keys in `config` take precedence.",
            {"type": "string"},
        ),
        *CONTAINER_KEYS,
        Key("depends_on", items_of(read_name), "The tasks that must end before this one starts.", _NAMES),
        Key(
            "inputs",
            entries_of(read_name, read_value, nullable=True),
            "Named arguments: a constant, {ref: path} or {secret: name}.",
            _VALUES,
        ),
        Key(
            "run_if",
            choice(RunIf),
            "How its upstream tasks must have ended. Default: all_success.",
            {"enum": [option.value for option in RunIf]},
        ),
        WHEN_KEY,
        *FAN_OUT_KEYS,
        Key("rate", read_rate, "Maximum rate of starts: `10/s`, `100/m`, `1000/h`.", RATE_SCHEMA),
        Key(
            "cache",
            duration(zero_allowed=False),
            "Maximum age of an equal earlier result to reuse.",
            _DURATION,
        ),
        *TYPE_KEYS,
        *SHARED_KEYS,
    ),
    _SYNONYMS,
)

DEFAULTS_TABLE = KeyTable("`defaults`", SHARED_KEYS)

_SPEC_FIELDS = (
    "depends_on",
    "inputs",
    "env",
    "retries",
    "retry_delay",
    "retry_on",
    "on_unreachable",
    "timeout",
    "pool",
    "priority",
    "environment",
    "isolation",
    "image",
    "worker",
    "resources",
    "run_if",
    "when",
    "parallel",
    "foreach",
    "concurrency",
    "rate",
    "cache",
    "output_type",
)


class ParsedTask(NamedTuple):
    """A task and the nodes it was parsed from, for error positions.

    `spec.depends_on` has only explicit dependencies. An incomplete task has a problem, and its action is undefined.
    """

    spec: TaskSpec
    key: Node
    body: Node
    is_complete: bool

    def node_at(self, *path: str | int) -> Node:
        """The node at this path in the task, or its nearest ancestor; the task's name if there is none."""
        node = self.body
        for step in path:
            below = _child(node, step)
            if below is None:
                break
            node = below
        return self.key if node is self.body else node


def read_task(key: Node, body: Node, defaults: dict[str, Any], reading: Reading) -> ParsedTask:
    name = read_name(key, reading) or key.value
    values = TASK_TABLE.read(body, reading)
    if values is None:
        return ParsedTask(TaskSpec(name, "", Command(())), key, body, is_complete=False)
    is_misspelled = _is_action_misspelled(body)  # which is an error already
    settled = None if is_misspelled else resolve_action(values, defaults.get("executor"), body, key, reading)
    executor, action = settled or ("", Command(()))
    check_fan_out(values, key, body, reading)
    fields = {field: values[field] for field in _SPEC_FIELDS if field in values}
    if "input_type" in values:
        fields["input_types"] = values["input_type"]
    if isinstance(action, Approval):
        # The default timeout is for attempts, not for people.
        fields |= {name: value for name, value in values["approval"].items() if name == "timeout"}
    else:
        shared = defaults if "image" not in values else _without(defaults, ("environment", "isolation"))
        fields = with_defaults(fields, shared)
    return ParsedTask(TaskSpec(name, executor, action, **fields), key, body, settled is not None)


def _is_action_misspelled(body: Node) -> bool:
    """No key says what to run, and an unknown one is probably meant to."""
    actions = (*ACTION_KEYS, "image")
    return all(body.get(name) is None for name in actions) and not TASK_TABLE.meant(body).isdisjoint(actions)


def with_defaults(fields: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    """The fields of a task, completed with the shared defaults."""
    filled = {**defaults, **fields}
    filled.pop("executor", None)
    if "env" in defaults:
        filled["env"] = _merged(defaults["env"], fields.get("env", ()))
    return filled


def _without(values: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in names}


def _merged(defaults: tuple[tuple[str, Any], ...], own: tuple[tuple[str, Any], ...]) -> tuple[tuple[str, Any], ...]:
    return tuple({**dict(defaults), **dict(own)}.items())


def _child(node: Node, step: str | int) -> Node | None:
    if isinstance(step, str):
        return node.get(step)
    if node.kind == Kind.LIST and step < len(node.value):
        return node.value[step]  # type: ignore[no-any-return]
    return None

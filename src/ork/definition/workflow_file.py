"""Parses a workflow file, with the tasks it imports from projects of other tools, and reports all problems within it.

Whether the names and files it mentions exist is checked later, in `ork.compile`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from ork.definition.actions import known_or_default, read_path
from ork.definition.budgets import read_budget
from ork.definition.custom import BUILT_IN, CustomExecutor
from ork.definition.environments import ENVIRONMENT_KEY
from ork.definition.keys import Key, KeyTable, Reading
from ork.definition.nodes import Kind, Node, is_null
from ork.definition.params import PARAMS_SCHEMA, read_params
from ork.definition.report import ProblemReport
from ork.definition.schedule import read_schedule
from ork.definition.tasks import DEFAULTS_TABLE, SHARED_KEYS, ParsedTask, read_task, with_defaults
from ork.definition.types import read_named_types, read_types
from ork.definition.values import NAME, integer, items_of, read_boolean, read_name, read_text
from ork.definition.yaml_tree import parse_yaml
from ork.model.workflow import Budget, Param, Schedule


class ParsedWorkflow(NamedTuple):
    """The parsed content. Complete only if the report has no problems."""

    root: Node
    tasks: dict[str, ParsedTask]
    name: str = ""
    description: str | None = None
    params: tuple[Param, ...] = ()
    schedule: Schedule | None = None
    max_active_runs: int | None = None
    fail_fast: bool = False
    alerts: tuple[str, ...] = ()
    imports: tuple[ParsedImport, ...] = ()
    types: tuple[tuple[str, Any], ...] = ()
    budget: Budget | None = None

    @property
    def declared_params(self) -> frozenset[str]:
        """Includes invalid params, so that references to them are not reported as well."""
        return _keys_below(self.root.get("params"))

    def node_at(self, key: str, index: int = 0) -> Node:
        node = self.root.get(key) or self.root
        return node.value[index] if node.kind == Kind.LIST and index < len(node.value) else node


def read_workflow(
    data: bytes,
    report: ProblemReport,
    executors: Collection[str] | None = None,
    custom: Mapping[str, CustomExecutor] = BUILT_IN,
) -> ParsedWorkflow | None:
    """Everything that could be parsed; None if the text is no map."""
    root = parse_yaml(data, report)
    return None if root is None else read_tree(root, report, executors, custom)


def read_tree(
    root: Node,
    report: ProblemReport,
    executors: Collection[str] | None = None,
    custom: Mapping[str, CustomExecutor] = BUILT_IN,
) -> ParsedWorkflow | None:
    """Like `read_workflow`, from a tree."""
    reading = Reading(report, executors=known_or_default(executors) | custom.keys(), custom=custom)
    if is_null(root):
        report.add_file("ORK112", "the file is empty", hint="write at least `name:` and `tasks:`")
        return None
    if root.kind == Kind.MAP:
        reading.task_names = _keys_below(root.get("tasks"))
        if (types := root.get("types")) is not None:
            reading.types = read_types(types, reading)
    values = WORKFLOW_TABLE.read(root, reading)
    if values is None:
        return None
    imported = values.pop("import", None)
    for missing in WORKFLOW_TABLE.missing(root):
        if missing == "tasks" and root.get("import") is not None:
            continue
        reading.refuse("ORK102", f"the workflow has no `{missing}`", _first_key(root), hint=_MISSING_HINTS[missing])
    defaults = values.pop("defaults", {})
    if "environment" in values:
        defaults = {"environment": values.pop("environment"), **defaults}
    tasks = _read_tasks(values.pop("tasks", None), defaults, reading)
    return ParsedWorkflow(root, tasks, imports=read_imports(imported, defaults, reading), **values)


def _read_tasks(node: Node | None, defaults: dict[str, Any], reading: Reading) -> dict[str, ParsedTask]:
    if node is None:
        return {}
    tasks = {}
    for key, body in node.pairs():
        tasks[key.value] = read_task(key, body, defaults, reading)
        if reading.report.is_full:
            break
    return tasks


def _check_tasks(node: Node, reading: Reading) -> Node | None:
    """Return the map unread: tasks are parsed last, when the defaults are known."""
    if node.kind != Kind.MAP:
        reading.expected("a map of tasks", node, hint="each task is a key: `extract:`, and what it does below it")
        return None
    if not node.value:
        reading.refuse("ORK102", "the workflow has no tasks", node, hint=_MISSING_HINTS["tasks"])
        return None
    return node


def _keys_below(node: Node | None) -> frozenset[str]:
    return (
        frozenset(key.value for key, _ in node.pairs()) if node is not None and node.kind == Kind.MAP else frozenset()
    )


def _first_key(root: Node) -> Node:
    return root.value[0] if root.value else root


_TASK_KEYS = tuple(key for key in SHARED_KEYS if key.name != "executor")


class ParsedImport(NamedTuple):
    """A dbt project (a folder), a selection of its nodes, and the fields that its tasks share."""

    dbt: str
    node: Node
    select: tuple[str, ...] = ()
    profiles_dir: str | None = None
    target: str | None = None
    prefix: str = ""
    fields: dict[str, Any] = {}  # noqa: RUF012 - never changed


def _read_prefix(node: Node, reading: Reading) -> str | None:
    text = read_text(node, reading)
    if text is not None and not NAME.fullmatch(text):
        reading.refuse("ORK105", f"`{text}` cannot begin a name", node, hint="write a prefix such as `dbt_`")
        return None
    return text


IMPORT_TABLE = KeyTable(
    "an import",
    (
        Key("dbt", read_path, "The folder of a dbt project.", {"type": "string"}, required=True),
        Key(
            "select",
            items_of(read_text),
            "A selection of nodes, as for `dbt build --select`. Default: all.",
            {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
        ),
        Key(
            "profiles_dir",
            read_path,
            "The folder of profiles.yml. Default: the project's folder, if it has one.",
            {"type": "string"},
        ),
        Key("target", read_text, "The target in the profile. Default: that of the profile.", {"type": "string"}),
        Key("prefix", _read_prefix, "The prefix of its task names. Default: none.", {"type": "string"}),
        *_TASK_KEYS,
    ),
)

IMPORT_KEY = Key(
    "import",
    lambda node, reading: check_imports(node, reading),
    "Tasks of other tools: dbt projects.",
    {"type": "array", "items": {"$ref": "#/$defs/import"}},
)


def check_imports(node: Node, reading: Reading) -> Node | None:
    """Return the list unread: imports are parsed last, when the defaults are known."""
    if node.kind != Kind.LIST:
        reading.expected("a list of imports", node, hint="write `import: [{dbt: folder}]`")
        return None
    return node


def read_imports(node: Node | None, defaults: dict[str, Any], reading: Reading) -> tuple[ParsedImport, ...]:
    entries = () if node is None else node.value
    found = [_read_import(entry, defaults, reading) for entry in entries]
    return tuple(entry for entry in found if entry is not None)


def _read_import(node: Node, defaults: dict[str, Any], reading: Reading) -> ParsedImport | None:
    values = IMPORT_TABLE.read(node, reading)
    if values is None:
        return None
    if IMPORT_TABLE.missing(node):
        reading.refuse("ORK102", "the import has no `dbt`", node, hint="name the project's folder: `{dbt: warehouse}`")
    if "dbt" not in values:
        return None
    own = {key.name: values.pop(key.name) for key in _TASK_KEYS if key.name in values}
    return ParsedImport(**values, node=node, fields=with_defaults(own, defaults))


_MISSING_HINTS = {"name": "add `name: my_workflow`", "tasks": "add `tasks:` with at least one task below it"}

WORKFLOW_TABLE = KeyTable(
    "a workflow",
    (
        Key("name", read_name, "The unique name of the workflow.", {"$ref": "#/$defs/name"}, required=True),
        Key("description", read_text, "A description for people.", {"type": "string"}),
        Key(
            "schedule",
            read_schedule,
            "When it runs.",
            {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/schedule"}]},
        ),
        Key("params", read_params, "The params of a run.", PARAMS_SCHEMA),
        Key(
            "types",
            read_named_types,
            "Named types for `input_type`, `output_type` and params: each a map of fields to types.",
            {"type": "object", "additionalProperties": {"$ref": "#/$defs/type"}},
        ),
        Key("defaults", DEFAULTS_TABLE.read, "Default keys for all tasks.", {"$ref": "#/$defs/defaults"}),
        ENVIRONMENT_KEY,
        IMPORT_KEY,
        Key(
            "max_active_runs",
            integer(1, 1_000_000),
            "Maximum number of active runs.",
            {"type": "integer", "minimum": 1, "maximum": 1_000_000},
        ),
        Key("fail_fast", read_boolean, "Whether the first failure stops all other tasks.", {"type": "boolean"}),
        Key(
            "budget",
            read_budget,
            "US dollars that a run may cost by estimate, and what happens when it costs more.",
            {"$ref": "#/$defs/budget"},
        ),
        Key(
            "alerts",
            items_of(read_name),
            "Alert targets for failures: names from ork.yaml.",
            {"anyOf": [{"$ref": "#/$defs/name"}, {"type": "array", "items": {"$ref": "#/$defs/name"}}]},
        ),
        Key(
            "tasks",
            _check_tasks,
            "The tasks by name.",
            {
                "type": "object",
                "minProperties": 1,
                "propertyNames": {"$ref": "#/$defs/name"},
                "additionalProperties": {"$ref": "#/$defs/task"},
            },
            required=True,
        ),
    ),
)


# Not `executor`: imported tasks are commands.

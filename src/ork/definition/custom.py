"""Custom executors and their tasks: `executors` in ork.yaml, `config` and `config_file` of a task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ork.definition.bindings import pointed, pointer_of
from ork.definition.keys import Reading
from ork.definition.nodes import Kind, Node
from ork.definition.problems import quoted
from ork.definition.values import NotJsonError, json_constant, read_text
from ork.model.kubernetes import KUBERNETES
from ork.model.trees import Tree, leaf, list_of, map_of, pointers
from ork.model.workflow import Action, Const, Custom, Ref

if TYPE_CHECKING:
    from ork.definition.project import Project

_OTHER_ACTION_KEYS = (
    "file",
    "module",
    "function",
    "command",
    "image",
    "args",
    "workflow",
    "approval",
    "job",
    "notebook",
)
# The executors that `ork.app.executors` makes; tasks name them with `executor`.
EXECUTORS = ("process", "python", "rust", "container", "cloudrun")
_OWN_NAMES = (*EXECUTORS, KUBERNETES, "workflow", "approval", "deferred")
_ALIASES = {
    "http": "ork.sdk.http:HttpExecutor",
    "sql": "ork.sdk.sql:SqlExecutor",
    "notebook": "ork.sdk.notebook:NotebookExecutor",
}


NOTEBOOK = "notebook"


class CustomExecutor(NamedTuple):
    """A class (`package.module:Class`) and the config shared by its tasks."""

    target: str
    config: Tree | None = None


BUILT_IN = {name: CustomExecutor(target) for name, target in _ALIASES.items()}


def read_class(node: Node, reading: Reading) -> str | None:
    """`package.module:Class`, or the name of a built-in executor."""
    text = read_text(node, reading)
    if text is None or text in _ALIASES:
        return text and _ALIASES[text]
    module, _, name = text.partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), *name.split("."))):
        hint = f"write `package.module:Class`, or one of: {', '.join(_ALIASES)}"
        reading.refuse("ORK604", f"{quoted(text)} cannot be a class", node, hint=hint)
        return None
    return text


def read_config(node: Node, reading: Reading) -> Tree | None:
    """A map whose values may be refs and secrets, at any depth."""
    if node.kind != Kind.MAP or pointer_of(node) is not None:
        reading.expected("a map of keys", node)
        return None
    return _tree(node, reading)


def read_shared_config(node: Node, reading: Reading) -> Tree | None:
    """The config of an executor. It belongs to no run, so refs are rejected."""
    tree = read_config(node, reading)
    if any(isinstance(pointer, Ref) for pointer, _ in pointers(tree)):
        hint = "write it in the task's own `config`; {secret: NAME} may stand here"
        reading.refuse("ORK604", "a ref is not allowed here: this config belongs to no run", node, hint=hint)
        return None
    return tree


def check_executor(name: str, values: dict[str, Any], node: Node, reading: Reading) -> None:
    """Check one executor of ork.yaml as a whole."""
    if name in _OWN_NAMES and ("class" in values or "config" in values):
        hint = "give your own executor another name"
        reading.refuse(
            "ORK604", f"{quoted(name)} is a built-in executor: only `max_workers` can be set", node, hint=hint
        )
    elif "config" in values and "class" not in values and name not in BUILT_IN:
        reading.refuse("ORK604", f"executor {quoted(name)} has `config` and no `class`", node, hint=_CLASS_HINT)
    elif not values and node.kind == Kind.MAP and not node.value:
        reading.refuse("ORK604", f"executor {quoted(name)} has no settings", node, hint=_CLASS_HINT)


_CLASS_HINT = "add `class: package.module:Class`"


def custom_executors_of(values: Mapping[str, dict[str, Any]]) -> dict[str, CustomExecutor]:
    """The custom executors of ork.yaml."""
    found = {}
    for name, entry in values.items():
        target = entry.get("class") or (_ALIASES.get(name) if "config" in entry else None)
        if target is not None:
            found[name] = CustomExecutor(target, entry.get("config"))
    return found


def custom_name(values: dict[str, Any], default: str | None, body: Node, reading: Reading) -> str | None:
    """The custom executor of a task, or None. Keys of the task take precedence over a default executor."""
    name: str | None = values.get("executor") or (default if not _first_written(body, _OTHER_ACTION_KEYS) else None)
    return name if name in reading.custom else None


def is_stray_config(values: dict[str, Any], body: Node, key: Node, reading: Reading) -> bool:
    """Report a config of a task that has no custom executor, and return True."""
    configured = _first_written(body, ("config", "config_file"))
    if configured is None:
        return False
    name = values.get("executor")
    hint = f"write `executor: NAME`, one of: {', '.join(sorted(reading.custom))}"
    shown = f"the executor {quoted(name)}" if name else "a task without a custom executor"
    reading.refuse("ORK603", f"`{configured}` cannot be used with {shown}", body.get(configured) or key, hint=hint)
    return True


def resolve_custom(
    name: str, values: dict[str, Any], body: Node, key: Node, reading: Reading
) -> tuple[str, Action] | None:
    """Executor and action of a task with a custom executor, or None if a problem was reported."""
    wrong = _first_written(body, _OTHER_ACTION_KEYS)
    if wrong is not None:
        message = f"`{wrong}` cannot be used with the executor {quoted(name)}"
        reading.refuse("ORK603", message, body.get(wrong) or key, hint="put its settings into `config`")
        return None
    target, config = reading.custom[name]
    tree = values.get("config")
    if tree is None and _first_written(body, ("config",)):
        return None
    if not _is_fixed_query(target, tree, body, key, reading):
        return None
    return name, Custom(target, config, tree)


def resolve_notebook(values: dict[str, Any], body: Node, key: Node, reading: Reading) -> tuple[str, Action] | None:
    """Executor and action of a task with `notebook`, which is short for the executor `notebook` with a config."""
    wrong = next((name for name in ("executor", "function", "args") if name in values), None)
    if wrong is not None:
        message = f"task {quoted(key.value)} runs a notebook: `{wrong}` has no effect"
        reading.refuse("ORK115", message, body.get(wrong) or key, hint="`inputs` are the notebook's parameters")
        return None
    target, config = reading.custom[NOTEBOOK]
    return NOTEBOOK, Custom(target, config, map_of({"notebook": leaf(Const(values["notebook"]))}))


def _is_fixed_query(target: str, tree: Tree | None, body: Node, key: Node, reading: Reading) -> bool:
    """Check that a query is constant: data may only be passed as parameters."""
    if target != _ALIASES["sql"]:
        return True
    wrong = next((path[0] for pointer, path in pointers(tree) if path[0] in ("query", "file")), None)
    if wrong is None:
        return True
    place = body.get("config")
    hint = "write `:name` in the query, and `inputs: {name: {ref: …}}`"
    reading.refuse("ORK603", f"`{wrong}` of a query cannot be a ref or a secret", place or key, hint=hint)
    return False


def _tree(node: Node, reading: Reading) -> Tree:
    pointer = pointer_of(node)
    if pointer is not None:
        kind, target = pointer
        value = Const(_constant(target, reading)) if kind == "const" else pointed(kind, target, reading)
        return leaf(value or Const(None))
    if node.kind == Kind.MAP:
        return map_of({name.value: _tree(child, reading) for name, child in node.pairs()})
    if node.kind == Kind.LIST:
        return list_of([_tree(child, reading) for child in node.value])
    return leaf(Const(_constant(node, reading)))


def _constant(node: Node, reading: Reading) -> Any:
    try:
        return json_constant(node)
    except NotJsonError as error:
        reading.refuse(error.code, error.message, error.node, hint=error.hint)
        return None


def _first_written(body: Node, names: tuple[str, ...]) -> str | None:
    return next((name for name in names if body.is_written(name)), None)


def custom_executors(project: Project | None) -> dict[str, CustomExecutor]:
    """Custom executors by name: built-in ones and those of the project."""
    return {**BUILT_IN, **(project.executors if project else {})}

"""Translates Jinja templates of Airflow: each `{{ … }}` becomes a constant, a reference, a secret, or a Python expression."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ork.importers.airflow.objects import Operator
from ork.importers.project import identifier

if TYPE_CHECKING:
    from ork.importers.airflow.dag_builder import DagBuilder

_SPLIT = re.compile(r"(\{\{-?.*?-?\}\}|\{%-?.*?-?%\}|\{#.*?#\})", re.S)
_RAW = re.compile(r"\{%-?\s*raw\s*-?%\}(.*?)\{%-?\s*endraw\s*-?%\}", re.S)
TIMES = frozenset(
    [
        "ds",
        "ds_nodash",
        "ts",
        "ts_nodash",
        "ts_nodash_with_tz",
        "execution_date",
        "logical_date",
        "data_interval_start",
        "data_interval_end",
        "next_ds",
        "next_ds_nodash",
        "prev_ds",
        "prev_ds_nodash",
        "yesterday_ds",
        "yesterday_ds_nodash",
        "tomorrow_ds",
        "tomorrow_ds_nodash",
        "next_execution_date",
        "prev_execution_date",
    ]
)
CONTEXT_NAMES = TIMES | frozenset(
    [
        "ti",
        "task_instance",
        "params",
        "dag_run",
        "run_id",
        "dag",
        "task",
        "macros",
        "var",
        "conn",
        "test_mode",
        "task_instance_key_str",
        "outlets",
        "inlets",
        "templates_dict",
        "inlet_events",
        "outlet_events",
        "triggering_dataset_events",
        "ts_nodash",
    ]
)
_PLAIN_NAMES = frozenset(
    ("range", "len", "str", "int", "float", "True", "False", "None", "true", "false", "none", "dict", "list")
)
_FILTERS = {
    "int": "int({0})", "string": "str({0})", "float": "float({0})", "lower": "str({0}).lower()", "upper": "str({0}).upper()",
    "trim": "str({0}).strip()", "tojson": "macros.json.dumps({0})", "length": "len({0})", "list": "list({0})", "safe": "{0}",
    "ds": "{0}.strftime('%Y-%m-%d')", "ds_nodash": "{0}.strftime('%Y%m%d')", "ts": "{0}.isoformat()",
    "ts_nodash": "{0}.strftime('%Y%m%dT%H%M%S')", "first": "{0}[0]", "last": "{0}[-1]", "abs": "abs({0})",
}  # fmt: skip
_CALL_FILTERS = {
    "default": "({0} or {1})", "d": "({0} or {1})", "replace": "str({0}).replace({1}, {2})", "join": "{1}.join(map(str, {0}))",
    "strftime": "{0}.strftime({1})", "round": "round({0}, {1})",
}  # fmt: skip


class TemplateError(Exception):
    """The template cannot be translated; the message says why."""


@dataclass
class Piece:
    """One `{{ … }}`. Exactly one of the first five fields says what it is; `python` computes it from the context."""

    name: str  # a name for the value
    const: str | None = None
    ref: str | None = None
    secret: str | None = None
    variable: tuple[str, str | None] | None = None  # of the environment, with its default
    python: ast.expr | None = None
    tasks: list[str] = field(default_factory=list)  # task ids whose outputs it uses


def has_template(value: Any) -> bool:
    return isinstance(value, str) and ("{{" in value or "{%" in value)


def pieces_of(text: str, operator: Operator, builder: DagBuilder) -> list[str | Piece]:
    """The text in parts. Raises TemplateError for what is not translated."""
    parts: list[str | Piece] = []
    position = 0
    for raw in _RAW.finditer(text):
        parts += _plain_pieces(text[position : raw.start()], operator, builder)
        parts.append(raw[1])
        position = raw.end()
    parts += _plain_pieces(text[position:], operator, builder)
    return parts


def _plain_pieces(text: str, operator: Operator, builder: DagBuilder) -> list[str | Piece]:
    parts: list[str | Piece] = []
    for part in _SPLIT.split(text):
        if part.startswith("{%"):
            raise TemplateError(f"the template has a block `{part[:60]}`")
        if part.startswith("{#"):
            continue
        if part.startswith("{{") and part.endswith("}}"):
            parts.append(piece_of(part[2:-2].strip("-").strip(), operator, builder))
        elif part:
            parts.append(part)
    return parts


def piece_of(source: str, operator: Operator, builder: DagBuilder) -> Piece:
    try:
        node = ast.parse(source.replace("\n", " ").strip(), mode="eval").body
    except SyntaxError as error:
        raise TemplateError(f"the template `{{{{ {source} }}}}` is not understood") from error
    simple = _simple(node, operator, builder)
    if simple is not None:
        return simple
    translated = _Translate(operator, builder)
    python = translated.visit(ast.parse(ast.unparse(node), mode="eval").body)
    return Piece(identifier(source)[:30], python=python, tasks=translated.tasks)


def _simple(node: ast.expr, operator: Operator, builder: DagBuilder) -> Piece | None:
    """What needs no code: names of the run, params, variables, outputs."""
    path = _path(node)
    match path:
        case ["run_id"] | ["dag_run", "run_id"]:
            return Piece("run_id", ref="run.id")
        case [("ti" | "task_instance" | "task"), "task_id"]:
            return Piece("task_id", const=operator.task_id)
        case ["dag", "dag_id"] | [("ti" | "task_instance" | "task"), "dag_id"]:
            return Piece("dag_id", const=operator.dag.dag_id if operator.dag else "")
        case ["params", str(name)]:
            own = operator.keywords.get("params")
            if isinstance(own, dict) and isinstance(own.get(name), str | int | float):
                return Piece(f"param_{name}", const=str(own[name]))
            builder.declare_param(name)
            return Piece(f"param_{identifier(name)}", ref=f"params.{name}")
        case ["dag_run", "conf", str(name)]:
            builder.declare_param(name)
            return Piece(f"param_{identifier(name)}", ref=f"params.{name}")
        case ["var", "value", str(name)]:
            return Piece(f"AIRFLOW_VAR_{name.upper()}", secret=builder.variable_secret(name))
    return _simple_call(node, operator, builder)


def _simple_call(node: ast.expr, operator: Operator, builder: DagBuilder) -> Piece | None:
    steps: list[str | int] = []
    while isinstance(node, ast.Subscript | ast.Attribute):
        step = node.attr if isinstance(node, ast.Attribute) else _constant(node.slice)
        if not isinstance(step, str | int) or (isinstance(step, str) and not re.fullmatch(r"[\w-]+", step)):
            return None
        steps.insert(0, step)
        node = node.value
    if not isinstance(node, ast.Call):
        return None
    path = _path(node.func)
    args = [_constant(each) for each in node.args]
    keywords = {each.arg: _constant(each.value) for each in node.keywords}
    match path:
        case [("ti" | "task_instance"), "xcom_pull"]:
            return _pulled(args, keywords, steps, operator, builder)
        case ["os_env"] if not steps and isinstance(args[0], str):
            return Piece(args[0], variable=(args[0], None if len(args) < 2 else str(args[1])))
        case ["var", "value", "get"] if not steps and isinstance(args[0], str):
            name = f"AIRFLOW_VAR_{args[0].upper()}"
            if len(args) > 1 and args[1] is not None:
                return Piece(name, variable=(name, str(args[1])))
            return Piece(name, secret=builder.variable_secret(args[0]))
        case ["dag_run", "conf", "get"] if not steps and isinstance(args[0], str):
            builder.declare_param(args[0], args[1] if len(args) > 1 else None)
            return Piece(f"param_{identifier(args[0])}", ref=f"params.{args[0]}")
    return None


def _pulled(
    args: list[Any], keywords: dict[str | None, Any], steps: list[str | int], operator: Operator, builder: DagBuilder
) -> Piece | None:
    tasks = args[0] if args else keywords.get("task_ids")
    if isinstance(tasks, list | tuple) and len(tasks) == 1:
        steps, tasks = [0, *steps] if False else steps, tasks[0]
    key = args[1] if len(args) > 1 else keywords.get("key", "return_value")
    if tasks is None and len(operator.upstream) == 1:
        tasks = operator.upstream[0].task_id
    if not isinstance(tasks, str) or not isinstance(key, str | None):
        return None
    name = builder.names.get(tasks)
    if name is None:
        raise TemplateError(f"it reads the output of `{tasks}`, which is no task of this DAG")
    path = "".join(
        f"[{step}]" if isinstance(step, int) else f".{step}" for step in builder.output_path(tasks, key, steps)
    )
    if any(isinstance(step, int) and step < 0 for step in steps):
        return None
    return Piece(f"from_{identifier(tasks)}", ref=f"tasks.{name}.output{path}", tasks=[tasks])


def _path(node: ast.expr) -> list[Any]:
    """`a.b['c']` as [a, b, c]; empty if it is anything else."""
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Attribute):
        below = _path(node.value)
        return [*below, node.attr] if below else []
    if isinstance(node, ast.Subscript):
        below, key = _path(node.value), _constant(node.slice)
        return [*below, key] if below and isinstance(key, str) else []
    return []


def _constant(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        return ...


class _Translate(ast.NodeTransformer):
    """Rewrites a Jinja expression to Python over `context`."""

    def __init__(self, operator: Operator, builder: DagBuilder) -> None:
        self._operator = operator
        self._builder = builder
        self.tasks: list[str] = []

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in CONTEXT_NAMES:
            if node.id in ("ti", "task_instance"):
                self.tasks += [each.task_id for each in self._operator.upstream]
            return ast.parse(f"context[{node.id!r}]", mode="eval").body
        if node.id in ("true", "false", "none"):
            return ast.Constant({"true": True, "false": False, "none": None}[node.id])
        if node.id in _PLAIN_NAMES or self._builder.macro(node.id):
            return node
        raise TemplateError(f"the template uses `{node.id}`, which is not known")

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        path = _path(node)
        if path[:1] == ["params"] and len(path) == 2:
            self._builder.declare_param(path[1], operator=self._operator)
            return ast.parse(f"context['params'][{path[1]!r}]", mode="eval").body
        if path[:2] == ["dag_run", "conf"] and len(path) == 3:
            self._builder.declare_param(path[2])
            return ast.parse(f"context['dag_run'].conf.get({path[2]!r})", mode="eval").body
        if path[:2] in (["var", "value"], ["var", "json"]) and len(path) == 3 and path[2] != "get":
            self._builder.variable_secret(path[2])
        if path[:1] == ["conn"]:
            raise TemplateError("the template uses a connection")
        return self.generic_visit(node)  # type: ignore[return-value]

    def visit_Call(self, node: ast.Call) -> ast.expr:
        path = _path(node.func)
        if path == ["dag_run", "conf", "get"] and node.args and isinstance(_constant(node.args[0]), str):
            self._builder.declare_param(_constant(node.args[0]))
        if path and path[-1] == "xcom_pull":
            found = [_constant(each) for each in node.args[:1]] + [
                _constant(each.value) for each in node.keywords if each.arg == "task_ids"
            ]
            names = [name for each in found for name in (each if isinstance(each, list | tuple) else [each])]
            self.tasks += [name for name in names if isinstance(name, str)]
        return self.generic_visit(node)  # type: ignore[return-value]

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        if not isinstance(node.op, ast.BitOr):
            return self.generic_visit(node)  # type: ignore[return-value]
        left = ast.unparse(self.visit(node.left))
        if isinstance(node.right, ast.Name) and node.right.id in _FILTERS:
            return ast.parse(_FILTERS[node.right.id].format(left), mode="eval").body
        if isinstance(node.right, ast.Call) and isinstance(node.right.func, ast.Name):
            form = _CALL_FILTERS.get(node.right.func.id)
            args = [ast.unparse(self.visit(each)) for each in node.right.args]
            if form is not None and form.count("{") <= len(args) + 1:
                return ast.parse(form.format(left, *args), mode="eval").body
        raise TemplateError(f"the template has a filter `{ast.unparse(node.right)}`")

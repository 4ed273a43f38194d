"""Arguments of tasks: as Python code, or as inputs in YAML; and what a mapped task is mapped over."""

from __future__ import annotations

import ast
import re
from typing import Any

from ork.importers.airflow.dag_builder import MODULE, DagBuilder
from ork.importers.airflow.objects import Operator, TaskOutput
from ork.importers.airflow.templates import Piece, TemplateError, has_template, pieces_of
from ork.importers.project import ImportedTask, Untranslatable, identifier, unique_name
from ork.importers.python.call_code import CallCode
from ork.importers.python.extract import Missing
from ork.importers.python.values import LaterParam, SourceFunction, is_known
from ork.importers.yaml_text import literal


def copy_function(function: SourceFunction, builder: DagBuilder) -> list[Missing]:
    if isinstance(function.node, ast.Lambda):
        return builder.module.need_names(function.node, function.scope)
    if function.scope.module is builder.dag.module:
        return builder.module.need_function(function)
    assert function.scope.module is not None
    if function.scope.parent is not None:
        return [Missing("its function is defined inside a function of another file", function.node.lineno)]
    builder.module.add_import(f"from {function.scope.module.name} import {function.name}")
    return builder.files.need(function.scope.module, function.name)


class ArgumentCode(CallCode):
    """Python code of the arguments of a task, and the inputs that it needs."""

    def __init__(self, operator: Operator, builder: DagBuilder) -> None:
        super().__init__(builder.module, builder.dag.module)
        self.operator = operator
        self.builder = builder
        self.inputs: dict[str, Any] = {}
        self.outputs: dict[str, str] = {}  # task id: parameter
        self.uses_context = False
        self._native = builder.dag.keywords.get("render_template_as_native_obj") is True

    def special(self, value: Any) -> str | None:
        if isinstance(value, TaskOutput):
            return self._output(value)
        if has_template(value):
            return self._template(value)
        if isinstance(value, SourceFunction) and not isinstance(value.node, ast.Lambda):
            self.refuse(copy_function(value, self.builder))
            return value.name
        return None

    def _output(self, value: TaskOutput) -> str:
        parameter = self.output_parameter(value.task.task_id)
        steps = value.path
        if value.task.task_id in self.builder.pushing:
            first = steps[0] if steps else "return_value"
            return f"{parameter}[{first!r}]" + "".join(f"[{step!r}]" for step in steps[1:])
        return parameter + "".join(f"[{step!r}]" for step in steps)

    def output_parameter(self, task_id: str) -> str:
        """The parameter that receives the output of a task."""
        if task_id not in self.builder.names:
            raise Untranslatable(f"it reads the output of `{task_id}`, which is no task of this DAG")
        if task_id not in self.outputs:
            name = unique_name(f"from_{identifier(task_id)}", set(self.inputs))
            self.outputs[task_id] = name
            self.inputs[name] = {"ref": f"tasks.{self.builder.names[task_id]}.output"}
        return self.outputs[task_id]

    def _template(self, text: str) -> str:
        try:
            parts = pieces_of(text, self.operator, self.builder)
        except TemplateError as error:
            raise Untranslatable(str(error)) from error
        if len(parts) == 1 and isinstance(parts[0], Piece):
            code = self._piece(parts[0])
            return (
                code
                if self._native or isinstance(text, LaterParam) or parts[0].const is not None
                else f"str({code})"
                if not _is_text(parts[0])
                else code
            )
        body = [
            part if isinstance(part, str) else ast.FormattedValue(ast.parse(self._piece(part), mode="eval").body, -1)
            for part in parts
        ]
        joined = ast.JoinedStr([ast.Constant(part) if isinstance(part, str) else part for part in body])
        return ast.unparse(ast.fix_missing_locations(ast.Expression(joined)))

    def _piece(self, piece: Piece) -> str:
        if piece.const is not None:
            return repr(piece.const)
        if piece.secret is not None:
            self.builder.secrets.setdefault(self.operator.task_id, set()).add(piece.secret)
            self.builder.module.add_import(f"from {MODULE} import variable")
            return f"variable({piece.secret!r})"
        if piece.variable is not None:
            self.builder.project.pass_env.append(piece.variable[0])
            self.builder.module.add_import(f"from {MODULE} import variable")
            return f"variable({piece.variable[0]!r}, {piece.variable[1] or ''!r})"
        if piece.ref is not None and piece.tasks:
            steps = re.findall(r"\.([^.\[]+)|\[(\d+)\]", piece.ref.partition(".output")[2])
            return self.output_parameter(piece.tasks[0]) + "".join(
                f"[{name!r}]" if name else f"[{index}]" for name, index in steps
            )
        self.uses_context = True
        if piece.ref is not None:
            head, _, name = piece.ref.partition(".")
            return f"context['params'][{name!r}]" if head == "params" else "context['run_id']"
        assert piece.python is not None
        for task_id in piece.tasks:
            if task_id in self.builder.names:
                self.output_parameter(task_id)
        return ast.unparse(piece.python)


def _is_text(piece: Piece) -> bool:
    if piece.secret or piece.variable or (piece.ref or "").startswith("run."):
        return True
    return (
        piece.python is not None
        and re.fullmatch(r"context\['(\w*ds\w*|\w*ts\w*)'\]", ast.unparse(piece.python)) is not None
    )


def input_value(value: Any, builder: DagBuilder) -> Any:
    """A constant or a reference, as YAML. Raises Untranslatable if the value needs code."""
    if isinstance(value, TaskOutput):
        path = (
            builder.output_path(value.task.task_id, None, list(value.path))
            if value.task.task_id not in builder.pushing
            else [*(value.path or ("return_value",))]
        )
        name = builder.names.get(value.task.task_id)
        if name is None or any(isinstance(step, str) and not re.fullmatch(r"[\w-]+", step) for step in path):
            raise Untranslatable("an output of another DAG")
        steps = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
        return {"ref": f"tasks.{name}.output{steps}"}
    from ork.importers.airflow.dag_builder import json_or_none

    if isinstance(value, LaterParam):
        return {"ref": f"params.{value.name}"}
    if value is None:
        return None
    found = json_or_none(value)
    if (
        found is None
        or isinstance(value, tuple | set | bytes)
        or has_template(value)
        or found != value
        or _has_templates(found)
    ):
        raise Untranslatable("it needs code")
    return literal(found)


def _has_templates(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_templates, value.values()))
    return any(map(_has_templates, value)) if isinstance(value, list) else has_template(value)


def foreach(operator: Operator, task: ImportedTask, builder: DagBuilder) -> dict[str, Any]:
    """Sets `foreach` for a mapped task, and returns the inputs that come from the item."""
    mapped = operator.mapped
    if mapped is None:
        return {}
    if len(mapped) == 1:
        ((name, value),) = mapped.items()
        if isinstance(value, dict) and is_known(value):
            value = [list(pair) for pair in value.items()]
        if isinstance(value, TaskOutput):
            task.keys["foreach"] = input_value(value, builder)["ref"]
        elif isinstance(value, list | tuple) and is_known(list(value)) and not _has_templates(list(value)):
            task.keys["foreach"] = literal([list(each) if isinstance(each, tuple) else each for each in value])
        else:
            raise Untranslatable("it is mapped over values that are known only when the file is run")
        return {name: {"ref": "item"}}
    if not all(isinstance(value, list | tuple) and is_known(list(value)) for value in mapped.values()):
        raise Untranslatable("it is mapped over several lists, of which one is an output")
    from itertools import product

    rows = [dict(zip(mapped, row, strict=True)) for row in product(*mapped.values())]
    task.keys["foreach"] = literal(rows)
    return {name: {"ref": f"item.{name}"} for name in mapped}

"""Makes a workflow of a followed flow."""

from __future__ import annotations

import ast
from typing import Any

from ork.importers.flows.steps import (
    FlowFunction,
    FlowParam,
    ImportedFlow,
    Step,
    StepFunction,
    StepOutput,
    Unmapped,
    step_outputs_in,
)
from ork.importers.project import (
    ImportedProject,
    ImportedTask,
    ImportedWorkflow,
    Level,
    Untranslatable,
    identifier,
    safe_name,
    unique_name,
)
from ork.importers.python.call_code import CallCode
from ork.importers.python.extract import CopiedFiles
from ork.importers.python.values import SourceFunction, is_known
from ork.importers.yaml_text import literal


class FlowBuilder:
    """Builds one workflow. Subclasses add the keys of their framework."""

    def __init__(self, flow: ImportedFlow, project: ImportedProject, files: CopiedFiles, name: str) -> None:
        self.flow = flow
        self.project = project
        self.files = files
        self.workflow = ImportedWorkflow(project.workflow_name(name), flow.place)
        project.workflows.append(self.workflow)
        self.module = files.new(flow.module, f"{identifier(self.workflow.name)}_tasks.py")
        self.names: dict[int, str] = {}

    def build(self) -> ImportedWorkflow:
        taken: set[str] = set()
        for step in self.flow.steps:
            self.names[id(step)] = unique_name(safe_name(step.name), taken)
            taken.add(self.names[id(step)])
        self.workflow_keys()
        for step in self.flow.steps:
            self._add(step)
        for text, place in self.flow.problems:
            self.workflow.note(Level.PERSON, text, place)
        if not self.module.is_empty:
            head = f"Functions of the workflow {self.workflow.name}, imported from {self.flow.module.path}."
            self.project.files[self.module.path] = self.module.text(head)
        return self.workflow

    def _add(self, step: Step) -> None:
        task = self.workflow.add(ImportedTask(self.names[id(step)], step.kind, step.place))
        before = [output.step for output in step_outputs_in([step.args, step.keywords])] + step.after
        task.depends_on = [self.names[id(each)] for each in dict.fromkeys(before) if id(each) in self.names]
        try:
            if step.problem is not None:
                raise Untranslatable(step.problem)
            self._task(step, task)
            self.task_keys(step, task)
        except Untranslatable as reason:
            task.leave_to_a_person(str(reason))

    def workflow_keys(self) -> None:
        """Sets the keys of the workflow."""

    def task_keys(self, step: Step, task: ImportedTask) -> None:
        """Sets retries and the like."""

    def context_code(self, function: SourceFunction) -> dict[str, str]:  # noqa: ARG002
        """Code for parameters that the framework passes itself."""
        return {}

    def result_code(self, step: Step) -> str:  # noqa: ARG002
        """What becomes of the result: `{0}`, or a call."""
        return "{0}"

    def _task(self, step: Step, task: ImportedTask) -> None:
        values = dict(zip(step.target.function.parameters, step.args, strict=False)) | step.keywords
        if len(step.args) > len(step.target.function.parameters) or "**" in step.keywords:
            raise Untranslatable("its arguments are known only when the flow runs")
        if isinstance(step.target, FlowFunction):
            task.keys["workflow"] = safe_name(step.target.name)
            task.keys["inputs"] = {name: self._input(value) for name, value in values.items()}
            return
        function = step.target.function
        code = _StepCode(self)
        code.refuse(self._copy(function))
        special = self.context_code(function)
        items = self._foreach(step, task, values)
        direct = not special and self.result_code(step) == "{0}" and not function.node.args.posonlyargs
        if direct:
            try:
                inputs = {name: items.get(name) or self._input(value) for name, value in values.items()}
            except Untranslatable:
                direct = False
        if direct:
            own = function.scope.module is self.flow.module
            module = function.scope.module
            assert module is not None
            task.keys["file"] = self.module.path if own else module.name.replace(".", "/") + ".py"
            task.keys["function"] = function.name
            if inputs:
                task.keys["inputs"] = inputs
            return
        self._wrapped(step, task, values, items, special, code)

    def _copy(self, function: SourceFunction) -> list[Any]:
        module = function.scope.module
        if module is self.flow.module:
            return self.module.need_function(function)
        assert module is not None
        self.module.add_import(f"from {module.name} import {function.name}")
        return self.files.need(module, function.name)

    def _wrapped(
        self,
        step: Step,
        task: ImportedTask,
        values: dict[str, Any],
        items: dict[str, Any],
        special: dict[str, str],
        code: _StepCode,
    ) -> None:
        """A function that calls the original with its arguments."""
        codes = [f"{name}={special[name]}" for name in special]
        for name, value in values.items():
            source = _item_code(items[name]["ref"]) if name in items else code.code(value)
            codes.append(f"{name}={source}")
        name = f"{identifier(self.names[id(step)])}_task"
        uses_ctx = any("ctx" in each for each in special.values())
        parameters = [
            *(["ctx"] if uses_ctx else []),
            *(f"{each}=None" for each in code.inputs),
            *(["item=None"] if items else []),
        ]
        made = self.result_code(step).format(f"{step.target.function.name}({', '.join(codes)})")
        text = f"def {name}({', '.join(parameters)}):\n    return {made}"
        try:
            ast.parse(text)
        except SyntaxError as error:
            raise Untranslatable(f"the call of its function is not Python: {error.msg}") from error
        self.module.wrappers.append(text)
        task.keys["file"], task.keys["function"] = self.module.path, name
        if code.inputs:
            task.keys["inputs"] = code.inputs

    def _foreach(self, step: Step, task: ImportedTask, values: dict[str, Any]) -> dict[str, dict[str, str]]:
        """Sets `foreach` for a mapped step, and returns the references of its mapped parameters."""
        if not step.mapped:
            return {}
        if len(step.mapped) == 1:
            (name,) = step.mapped
            value = values[name]
            if isinstance(value, StepOutput | FlowParam):
                task.keys["foreach"] = self._input(value)["ref"]
            elif isinstance(value, list | tuple) and is_known(list(value)):
                task.keys["foreach"] = literal(list(value))
            else:
                raise Untranslatable("it is mapped over values that are known only when the flow runs")
            return {name: {"ref": "item"}}
        lists = {name: values[name] for name in values if name in step.mapped}
        if not all(isinstance(value, list | tuple) and is_known(list(value)) for value in lists.values()):
            raise Untranslatable("it is mapped over several lists, of which one is an output")
        rows = [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=False)]
        task.keys["foreach"] = literal(rows)
        return {name: {"ref": f"item.{name}"} for name in lists}

    def _input(self, value: Any) -> Any:
        """A constant or a reference, as YAML. Raises Untranslatable if the value needs code."""
        value = value.value if isinstance(value, Unmapped) else value
        if isinstance(value, FlowParam):
            return {"ref": f"params.{value.name}"}
        if isinstance(value, StepOutput):
            steps = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in value.path)
            if any(isinstance(step, str) and not step.replace("-", "_").isidentifier() for step in value.path):
                raise Untranslatable("it needs code")
            return {"ref": f"tasks.{self.names[id(value.step)]}.output{steps}"}
        if is_known(value) and not isinstance(value, tuple | set | bytes):
            return literal(value)
        raise Untranslatable("it needs code")


def _item_code(ref: str) -> str:
    head, _, name = ref.partition(".")
    return f"{head}[{name!r}]" if name else head


class _StepCode(CallCode):
    """Code of the arguments of a step, and the inputs that it needs."""

    def __init__(self, builder: FlowBuilder) -> None:
        super().__init__(builder.module, builder.flow.module)
        self._builder = builder
        self.inputs: dict[str, Any] = {}

    def special(self, value: Any) -> str | None:
        if isinstance(value, Unmapped):
            return self.code(value.value)
        if isinstance(value, FlowParam):
            self.inputs[f"param_{value.name}"] = {"ref": f"params.{value.name}"}
            return f"param_{value.name}"
        if isinstance(value, StepOutput):
            task = self._builder.names[id(value.step)]
            self.inputs[f"from_{identifier(task)}"] = {"ref": f"tasks.{task}.output"}
            return f"from_{identifier(task)}" + "".join(f"[{step!r}]" for step in value.path)
        return None


def param_defaults(builder: FlowBuilder, evaluate: Any) -> dict[str, Any]:
    """The params of a workflow from the parameters of its function."""
    function = builder.flow.target.function
    found: dict[str, Any] = {}
    for name in function.parameters:
        default = function.defaults.get(name)
        value = evaluate(default, function.scope) if default is not None else None
        if default is None:
            found[name] = {"type": "any"}
        else:
            found[name] = {"default": value if is_known(value) and not isinstance(value, tuple | set | bytes) else None}
    return found


__all__ = ["FlowBuilder", "StepFunction", "param_defaults"]

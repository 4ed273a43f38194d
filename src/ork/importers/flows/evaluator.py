"""Follows flows: which tasks they call, with what."""

from __future__ import annotations

import ast
from typing import Any

from ork.importers.flows.steps import FlowFunction, FlowParam, ImportedFlow, Step, StepFunction, StepOutput, Unmapped
from ork.importers.project import unique_name
from ork.importers.python.evaluate import Evaluator
from ork.importers.python.known_calls import NOT_KNOWN
from ork.importers.python.modules import Sources
from ork.importers.python.values import Bound, Imported, NameScope, SourceFunction, Unknown

_CONDITION = "it depends on a condition that is known only when the flow runs"
_LOOP = "it is in a loop over values that are known only when the flow runs"


class FlowEvaluator(Evaluator):
    """`task_names` and `flow_names` are the dotted names of the framework's decorators."""

    task_names: tuple[str, ...] = ()
    flow_names: tuple[str, ...] = ()

    def __init__(self, sources: Sources) -> None:
        super().__init__(sources)
        self._flow: ImportedFlow | None = None
        self._problem: str | None = None

    def follow(self, target: FlowFunction) -> ImportedFlow:
        """Follows the body of a flow."""
        module = target.function.scope.module
        assert module is not None
        flow = ImportedFlow(target, module, self.sources.place(module, target.function.node))
        before, self._flow = self._flow, flow
        try:
            params = {name: FlowParam(name) for name in self.flow_parameters(target)}
            self.call_function(target.function, [], params)
        finally:
            self._flow = before
        return flow

    def flow_parameters(self, target: FlowFunction) -> list[str]:
        return target.function.parameters

    # Decorators.

    def on_function(self, function: SourceFunction) -> Any:
        for decorator in function.decorators:
            found = self._decorated(decorator, function)
            if found is not None:
                return found
        return function

    def _decorated(self, decorator: Any, function: SourceFunction) -> Any:
        name, keywords = None, {}
        if isinstance(decorator, Imported):
            name = decorator.dotted
        elif hasattr(decorator, "function") and isinstance(decorator.function, Imported):
            name, keywords = decorator.function.dotted, dict(decorator.keywords)
            if decorator.args and isinstance(decorator.args[0], str):
                keywords.setdefault("name", decorator.args[0])
        if name in self.task_names:
            return StepFunction(function, keywords, f"@{name.rpartition('.')[2]}")
        if name in self.flow_names:
            return FlowFunction(function, keywords, f"@{name.rpartition('.')[2]}")
        return None

    # Calls.

    def on_call(self, target: Any, args: list[Any], keywords: dict[str, Any], node: ast.Call, scope: NameScope) -> Any:
        match target:
            case StepFunction():
                return self.call_step(target, args, keywords, node, scope)
            case FlowFunction() if self._flow is not None:
                return self.call_step(target, args, keywords, node, scope)
            case FlowFunction():
                return Unknown(node, scope)
            case Bound(owner=StepFunction() | FlowFunction() | StepOutput()):
                return self.step_method(target, args, keywords, node, scope)
        return NOT_KNOWN

    def step_method(
        self,
        bound: Bound,  # noqa: ARG002
        args: list[Any],  # noqa: ARG002
        keywords: dict[str, Any],  # noqa: ARG002
        node: ast.Call,
        scope: NameScope,
    ) -> Any:
        """A method of a task or of its output."""
        return Unknown(node, scope)

    def call_step(
        self,
        target: StepFunction | FlowFunction,
        args: list[Any],
        keywords: dict[str, Any],
        node: ast.AST,
        scope: NameScope,
        mapped: bool = False,
    ) -> Any:
        if self._flow is None or scope.module is None:
            return Unknown(node if isinstance(node, ast.expr) else None, scope)
        given = dict(keywords)
        after = self.taken_out(given)
        names = [each.name for each in self._flow.steps]
        wanted = target.keywords.get("name") or target.function.name
        step = Step(
            unique_name(wanted if isinstance(wanted, str) else target.function.name, set(names)),
            target.kind,
            self.sources.place(scope.module, node),
            target,
            args=list(args),
            keywords=given,
            after=after,
            problem=self._problem,
        )
        if mapped:
            parameters = target.function.parameters
            bound = dict(zip(parameters, args, strict=False)) | given
            step.mapped = {
                name for name, value in bound.items() if not isinstance(value, Unmapped) and self.is_mapped(value)
            }
        self._flow.steps.append(step)
        return StepOutput(step)

    def is_mapped(self, value: Any) -> bool:
        return isinstance(value, list | tuple | StepOutput | FlowParam | Unknown)

    def taken_out(self, keywords: dict[str, Any]) -> list[Step]:  # noqa: ARG002
        """Removes arguments that only say which steps come before, and returns these steps."""
        return []

    # Values.

    def attribute(self, owner: Any, name: str, node: ast.Attribute, scope: NameScope) -> Any:
        if isinstance(owner, StepFunction | FlowFunction | StepOutput):
            return Bound(owner, name)
        return Unknown(node, scope) if isinstance(owner, FlowParam) else NOT_KNOWN

    def item_of(self, owner: Any, key: Any) -> Any:
        if isinstance(owner, StepOutput) and isinstance(key, str | int):
            return StepOutput(owner.step, (*owner.path, key))
        return NOT_KNOWN

    def assign(self, target: ast.expr, value: Any, scope: NameScope) -> None:
        if isinstance(target, ast.Tuple | ast.List) and isinstance(value, StepOutput):
            for index, each in enumerate(target.elts):
                self.assign(each, StepOutput(value.step, (*value.path, index)), scope)
            return
        super().assign(target, value, scope)

    # What is known only when the flow runs.

    def _if(self, node: ast.If, scope: NameScope) -> None:
        test = self.value(node.test, scope)
        if not isinstance(test, Unknown | StepOutput | FlowParam) or self._is_main(node.test):
            super()._if(node, scope)
            return
        before, self._problem = self._problem, _CONDITION
        self.run([*node.body, *node.orelse], scope)
        self._problem = before

    def on_unknown_loop(self, node: ast.For | ast.AsyncFor, scope: NameScope) -> None:
        before, self._problem = self._problem, _LOOP
        super().on_unknown_loop(node, scope)
        self._problem = before

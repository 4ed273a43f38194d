"""Imports flows of Prefect: calls of tasks in a flow become tasks, its parameters become params."""

from __future__ import annotations

import ast
import re
from datetime import timedelta
from typing import Any

from ork.importers.flows.builder import FlowBuilder, param_defaults
from ork.importers.flows.evaluator import FlowEvaluator
from ork.importers.flows.steps import FlowFunction, Step, StepFunction, StepOutput, Unmapped, step_outputs_in
from ork.importers.project import ImportedProject, ImportedTask, Level
from ork.importers.python.extract import CopiedFiles, Framework
from ork.importers.python.modules import Sources
from ork.importers.python.values import Bound, ForeignCall, Imported, NameScope, Unknown
from ork.importers.sources import copied_text, files_below

MODULE = "from_prefect"
_REPLACED = frozenset({"get_run_logger", "Variable"})
_DECORATOR = re.compile(r"(prefect\.)?(task|flow)\b")


def import_prefect(path: str) -> ImportedProject:
    """The project of all flows in a file or folder."""
    project = ImportedProject(source=path, kind="prefect")
    sources = Sources(path, project)
    evaluator = _Prefect(sources)
    files = CopiedFiles(
        sources,
        Framework(("prefect",), dict.fromkeys(_REPLACED, MODULE)),
        lambda value: isinstance(value, FlowFunction),
        lambda node: _DECORATOR.match(ast.unparse(node)) is not None,
    )
    for file in files_below(path, (".py",)):
        module = sources.load(file)
        if module is None or "prefect" not in module.text:
            continue
        evaluator.evaluate_module(module)
        for target in [each for each in module.scope.names.values() if isinstance(each, FlowFunction)]:
            if target.function.scope.module is module:
                flow = evaluator.follow(target)
                _PrefectBuilder(flow, project, files, evaluator).build()
    project.files |= {name: text for name, text in files.texts().items() if name not in project.files}
    if any(f"from {MODULE} import" in text for text in project.files.values()):
        project.files[f"{MODULE}.py"] = copied_text(MODULE)
    return project


class _Prefect(FlowEvaluator):
    task_names = ("prefect.task", "prefect.tasks.task")
    flow_names = ("prefect.flow", "prefect.flows.flow")

    def step_method(
        self, bound: Bound, args: list[Any], keywords: dict[str, Any], node: ast.Call, scope: NameScope
    ) -> Any:
        owner, name = bound
        match owner, name:
            case StepOutput(), ("result" | "wait"):
                return owner
            case ((StepFunction() | FlowFunction()), ("submit" | "delay" | "apply_async")):
                return self.call_step(owner, args, keywords, node, scope)
            case StepFunction(), "map":
                return self.call_step(owner, args, keywords, node, scope, mapped=True)
            case StepFunction(), "with_options":
                return StepFunction(owner.function, {**owner.keywords, **keywords}, owner.kind)
            case StepFunction(), "fn":
                return self.call_function(owner.function, args, keywords)
        return Unknown(node, scope)

    def on_call(self, target: Any, args: list[Any], keywords: dict[str, Any], node: ast.Call, scope: NameScope) -> Any:
        if isinstance(target, Imported) and target.dotted in (
            "prefect.unmapped",
            "prefect.utilities.annotations.unmapped",
        ):
            return Unmapped(args[0])
        return super().on_call(target, args, keywords, node, scope)

    def taken_out(self, keywords: dict[str, Any]) -> list[Step]:
        keywords.pop("return_state", None)
        return [output.step for output in step_outputs_in(keywords.pop("wait_for", None))]


class _PrefectBuilder(FlowBuilder):
    def __init__(self, flow: Any, project: ImportedProject, files: CopiedFiles, evaluator: _Prefect) -> None:
        super().__init__(flow, project, files, flow.target.name)
        self._evaluator = evaluator

    def workflow_keys(self) -> None:
        given = self.flow.target.keywords
        if isinstance(given.get("description"), str):
            self.workflow.keys["description"] = " ".join(given["description"].split())[:300]
        self._schedule()
        params = param_defaults(self, self._evaluator.value)
        if params:
            self.workflow.keys["params"] = params
        if given.get("retries"):
            self.workflow.note(Level.CHECK, "`retries` of a flow run all of it again; here tasks have `retries`")
        if given.get("timeout_seconds"):
            self.workflow.note(Level.CHECK, "`timeout_seconds` of a flow is not kept: tasks have `timeout`")

    def _schedule(self) -> None:
        """From `flow.serve(cron=…)` or `flow.deploy(…)`, wherever it is in the file."""
        function = self.flow.target.function.name
        for call in ast.walk(self.flow.module.tree):
            if not (
                isinstance(call, ast.Call)
                and isinstance(call.func, ast.Attribute)
                and call.func.attr in ("serve", "deploy", "to_deployment")
            ):
                continue
            if not any(isinstance(each, ast.Name) and each.id == function for each in ast.walk(call.func)):
                continue
            given = {
                key.arg: self._evaluator.value(key.value, self.flow.module.scope) for key in call.keywords if key.arg
            }
            cron, zone = _cron_of(given)
            if cron is not None:
                self.workflow.keys["schedule"] = {"cron": cron, "timezone": zone} if zone not in (None, "UTC") else cron
            elif any(given.get(name) is not None for name in ("interval", "rrule", "schedule", "schedules")):
                place = self._evaluator.sources.place(self.flow.module, call)
                self.workflow.note(Level.PERSON, "its schedule has no cron expression", place)

    def task_keys(self, step: Step, task: ImportedTask) -> None:
        given = step.target.keywords
        retries = given.get("retries")
        if isinstance(retries, int) and 0 < retries <= 1000:
            task.keys["retries"] = retries
            delay = given.get("retry_delay_seconds")
            if isinstance(delay, int | float):
                task.keys["retry_delay"] = float(delay) if isinstance(delay, float) else delay
        timeout = given.get("timeout_seconds")
        if isinstance(timeout, int | float) and timeout > 0:
            task.keys["timeout"] = timeout
        if given.get("cache_key_fn") is not None or given.get("cache_policy") is not None:
            task.note(Level.CHECK, "its cache is not kept: `cache` reuses results of equal inputs")


def _cron_of(given: dict[str, Any]) -> tuple[str | None, str | None]:
    if isinstance(given.get("cron"), str):
        return given["cron"], None
    schedule = given.get("schedule")
    if isinstance(schedule, ForeignCall):
        keywords = schedule.keywords | dict(zip(["cron"], schedule.args, strict=False))
        if isinstance(keywords.get("cron"), str):
            return keywords["cron"], keywords.get("timezone") if isinstance(keywords.get("timezone"), str) else None
    interval = given.get("interval")
    seconds = interval.total_seconds() if isinstance(interval, timedelta) else interval
    if isinstance(seconds, int | float) and seconds >= 60 and 3600 % seconds == 0:
        minutes = int(seconds // 60)
        return ("0 * * * *" if minutes == 60 else f"*/{minutes} * * * *"), None
    if seconds == 86_400:
        return "0 0 * * *", None
    return None, None


__all__ = ["import_prefect"]

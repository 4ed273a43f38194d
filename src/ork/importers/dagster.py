"""Imports jobs and assets of Dagster: calls of ops in a job become tasks; assets become tasks that depend on each other."""

from __future__ import annotations

import ast
import re
from typing import Any

from ork.importers.flows.builder import FlowBuilder
from ork.importers.flows.evaluator import FlowEvaluator
from ork.importers.flows.steps import FlowFunction, ImportedFlow, Step, StepFunction, StepOutput
from ork.importers.project import ImportedProject, ImportedTask, Level, SourcePlace, Untranslatable
from ork.importers.python.extract import CopiedFiles, Framework
from ork.importers.python.modules import Sources
from ork.importers.python.values import Bound, ForeignCall, Imported, Module, NameScope, SourceFunction, Unknown
from ork.importers.sources import copied_text, files_below

MODULE = "from_dagster"
_DECORATOR = re.compile(r"(dagster\.|dg\.)?(op|asset|job|graph|schedule|sensor|multi_asset|asset_check)\b")
_CONTEXTS = ("context", "_context", "ctx")
_RESULTS = ("Output(", "MaterializeResult(", "DynamicOutput(", "yield ")
_PARTITIONS = ("partition_key", "partition_time_window", "asset_partition_key")


def import_dagster(path: str) -> ImportedProject:
    """The project of all jobs and assets in a file or folder."""
    project = ImportedProject(source=path, kind="dagster")
    sources = Sources(path, project)
    evaluator = _Dagster(sources)
    text = copied_text(MODULE)
    names = frozenset(re.findall(r"^(?:class|def) (\w+)", text, re.M)) | {
        "MetadataValue",
        "AssetExecutionContext",
        "OpExecutionContext",
    }
    files = CopiedFiles(
        sources,
        Framework(("dagster",), dict.fromkeys(names, MODULE)),
        lambda value: isinstance(value, FlowFunction),
        lambda node: _DECORATOR.match(ast.unparse(node)) is not None,
    )
    modules: list[Module] = []
    for file in files_below(path, (".py",)):
        module = sources.load(file)
        if module is not None and "dagster" in module.text:
            evaluator.evaluate_module(module)
            modules.append(module)
    _Importer(modules, project, files, evaluator).build()
    project.files |= {name: text for name, text in files.texts().items() if name not in project.files}
    if any(f"from {MODULE} import" in each for each in project.files.values()):
        project.files[f"{MODULE}.py"] = text
    return project


class _Dagster(FlowEvaluator):
    task_names = ("dagster.op", "dagster.asset")
    flow_names = ("dagster.job", "dagster.graph")

    def flow_parameters(self, target: FlowFunction) -> list[str]:  # noqa: ARG002
        return []

    def step_method(
        self, bound: Bound, args: list[Any], keywords: dict[str, Any], node: ast.Call, scope: NameScope
    ) -> Any:
        owner, name = bound
        match owner, name:
            case StepOutput(), "map" if args and isinstance(args[0], StepFunction):
                return self.call_step(args[0], [owner], {}, node, scope, mapped=True)
            case StepOutput(), "collect":
                return owner
            case StepFunction(), ("alias" | "with_hooks" | "tag" | "with_retry_policy"):
                renamed = {"name": args[0]} if name == "alias" and args else {}
                return StepFunction(owner.function, {**owner.keywords, **renamed}, owner.kind)
            case FlowFunction(), "to_job":
                given = dict(keywords) | ({"name": args[0]} if args else {})
                return FlowFunction(owner.function, {**owner.keywords, **given}, "@job")
        return Unknown(node, scope)

    def attribute(self, owner: Any, name: str, node: ast.Attribute, scope: NameScope) -> Any:
        if isinstance(owner, StepOutput) and name not in ("map", "collect"):
            return StepOutput(owner.step, (*owner.path, name))  # an output by its name
        return super().attribute(owner, name, node, scope)


class _Importer:
    def __init__(
        self, modules: list[Module], project: ImportedProject, files: CopiedFiles, evaluator: _Dagster
    ) -> None:
        self.modules = modules
        self.project = project
        self.files = files
        self.evaluator = evaluator
        self.schedules: list[tuple[Any, str, str | None]] = []

    def build(self) -> None:
        values = [(name, value, module) for module in self.modules for name, value in module.scope.names.items()]
        own = [(name, value, module) for name, value, module in values if _module_of(value) in (None, module)]
        self._find_schedules(own)
        for _, value, _ in own:
            if isinstance(value, FlowFunction) and value.kind == "@job":
                flow = self.evaluator.follow(value)
                self._write(_DagsterBuilder(flow, self.project, self.files, value.name), value)
        assets = [value for _, value, _ in own if isinstance(value, StepFunction) and value.kind == "@asset"]
        jobs = [
            value for _, value, _ in own if isinstance(value, ForeignCall) and value.function.last == "define_asset_job"
        ]
        if not assets:
            return
        for job in jobs:
            self._asset_job(assets, job)
        if not jobs:
            self._asset_job(assets, None)

    def _find_schedules(self, values: list[tuple[str, Any, Module]]) -> None:
        for _, value, module in values:
            if isinstance(value, ForeignCall) and value.function.last == "ScheduleDefinition":
                job = value.keywords.get("job") or value.keywords.get("job_name") or value.keywords.get("target")
                self._add_schedule(job, value.keywords, self.evaluator.sources.place(module, value.node))
            if isinstance(value, SourceFunction):
                for decorator in value.decorators:
                    if isinstance(decorator, ForeignCall) and decorator.function.dotted == "dagster.schedule":
                        job = decorator.keywords.get("job") or decorator.keywords.get("job_name")
                        place = self.evaluator.sources.place(module, value.node)
                        self._add_schedule(job, decorator.keywords, place)
                    elif isinstance(decorator, ForeignCall | Imported) and "sensor" in str(
                        getattr(decorator, "function", decorator)
                    ):
                        self.project.note(
                            Level.PERSON,
                            f"the sensor `{value.name}` has no translation",
                            self.evaluator.sources.place(module, value.node),
                        )

    def _add_schedule(self, job: Any, given: dict[str, Any], place: SourcePlace) -> None:
        cron, zone = given.get("cron_schedule"), given.get("execution_timezone")
        if isinstance(cron, str):
            self.schedules.append((job, cron, zone if isinstance(zone, str) else None))
        else:
            self.project.note(Level.PERSON, "a schedule whose times are known only when the file is run", place)

    def _write(self, builder: FlowBuilder, job: Any) -> None:
        for target, cron, zone in self.schedules:
            is_it = target is job or (isinstance(target, str) and target == builder.workflow.name)
            is_it = is_it or (
                isinstance(target, ForeignCall) and isinstance(job, ForeignCall) and target.node is job.node
            )
            if is_it:
                builder.workflow.keys["schedule"] = (
                    {"cron": cron, "timezone": zone} if zone not in (None, "UTC") else cron
                )
        builder.build()

    def _asset_job(self, assets: list[StepFunction], job: ForeignCall | None) -> None:
        """All assets, or those that a job selects, as one workflow."""
        name = "assets"
        chosen = assets
        if job is not None:
            given = job.keywords | dict(zip(["name", "selection"], job.args, strict=False))
            name = given["name"] if isinstance(given.get("name"), str) else name
            chosen, problem = _selected(assets, given.get("selection"))
        else:
            problem = None
        module = chosen[0].function.scope.module if chosen else assets[0].function.scope.module
        assert module is not None
        place = self.evaluator.sources.place(module, (chosen or assets)[0].function.node)
        flow = ImportedFlow(FlowFunction((chosen or assets)[0].function, {"name": name}, "assets"), module, place)
        self._asset_steps(chosen, flow)
        builder = _DagsterBuilder(flow, self.project, self.files, name)
        if problem:
            builder.workflow.note(Level.PERSON, problem)
        self._write(builder, job)

    def _asset_steps(self, assets: list[StepFunction], flow: ImportedFlow) -> None:
        steps: dict[str, Step] = {}
        for asset in assets:
            name = _asset_name(asset)
            module = asset.function.scope.module
            assert module is not None
            steps[name] = Step(name, "@asset", self.evaluator.sources.place(module, asset.function.node), asset)
            flow.steps.append(steps[name])
        for asset, step in zip(assets, flow.steps, strict=True):
            renamed = (
                {key: _asset_key(value) for key, value in (asset.keywords.get("ins") or {}).items()}
                if isinstance(asset.keywords.get("ins"), dict)
                else {}
            )
            for parameter in asset.function.parameters:
                source = renamed.get(parameter) or parameter
                if source in steps:
                    step.keywords[parameter] = StepOutput(steps[source])
                elif parameter not in _CONTEXTS and parameter not in asset.function.defaults:
                    step.problem = (
                        f"its parameter `{parameter}` is a resource, a config, or an asset that was not selected"
                    )
            deps = asset.keywords.get("deps") or asset.keywords.get("non_argument_deps") or []
            for each in deps if isinstance(deps, list | tuple | set) else []:
                key = _asset_name(each) if isinstance(each, StepFunction) else _asset_key(each)
                if key in steps:
                    step.after.append(steps[key])


class _DagsterBuilder(FlowBuilder):
    def workflow_keys(self) -> None:
        description = self.flow.target.keywords.get("description")
        if isinstance(description, str):
            self.workflow.keys["description"] = " ".join(description.split())[:300]
        if self.flow.target.keywords.get("config") is not None:
            self.workflow.note(Level.CHECK, "the job's config is not kept: use `params` and `inputs`")

    def context_code(self, function: SourceFunction) -> dict[str, str]:
        first = function.parameters[0] if function.parameters else None
        if first not in _CONTEXTS:
            return {}
        self.module.add_import(f"from {MODULE} import Context")
        return {str(first): "Context(ctx)"}

    def result_code(self, step: Step) -> str:
        source = ast.unparse(step.target.function.node)
        if not any(each in source for each in _RESULTS):
            return "{0}"
        self.module.add_import(f"from {MODULE} import value_of")
        return "value_of({0})"

    def task_keys(self, step: Step, task: ImportedTask) -> None:
        given, source = step.target.keywords, ast.unparse(step.target.function.node)
        if given.get("required_resource_keys") or ".resources." in source:
            raise Untranslatable("it uses resources: make them in the function, with secrets in `env`")
        if given.get("config_schema") is not None:
            task.note(Level.CHECK, "its config is read from the run's params: `params` of the workflow")
        if given.get("partitions_def") is not None:
            if any(each in source for each in _PARTITIONS):
                raise Untranslatable("it reads its partition: use `run.scheduled_for` or a param, and `ork backfill`")
            task.note(Level.CHECK, "partitions are not kept: schedules and `ork backfill` run past times")
        policy = given.get("retry_policy")
        if isinstance(policy, ForeignCall):
            retries, delay = (
                policy.keywords.get("max_retries", policy.args[0] if policy.args else 1),
                policy.keywords.get("delay"),
            )
            if isinstance(retries, int):
                task.keys["retries"] = retries
            if isinstance(delay, int | float):
                task.keys["retry_delay"] = delay


def _selected(assets: list[StepFunction], selection: Any) -> tuple[list[StepFunction], str | None]:
    if selection in (None, "*") or (
        isinstance(selection, ForeignCall) and selection.function.dotted.endswith("AssetSelection.all")
    ):
        return assets, None
    wanted = selection if isinstance(selection, list | tuple) else [selection]
    names = {
        _asset_name(each) if isinstance(each, StepFunction) else each
        for each in wanted
        if isinstance(each, str | StepFunction)
    }
    if isinstance(selection, ForeignCall) and selection.function.dotted.endswith("AssetSelection.assets"):
        names = {
            _asset_name(each) if isinstance(each, StepFunction) else each
            for each in selection.args
            if isinstance(each, str | StepFunction)
        }
    if isinstance(selection, ForeignCall) and selection.function.dotted.endswith("AssetSelection.groups"):
        return [each for each in assets if each.keywords.get("group_name") in selection.args], None
    chosen = [each for each in assets if _asset_name(each) in names]
    return (
        (chosen, None)
        if chosen and len(chosen) == len(names)
        else (assets, "its selection of assets is not translated: it has all of them")
    )


def _asset_name(asset: StepFunction) -> str:
    name = asset.keywords.get("name")
    return name if isinstance(name, str) else asset.function.name


def _asset_key(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    if isinstance(value, ForeignCall):
        given = value.keywords.get("key") or (value.args[0] if value.args else None)
        given = given[-1] if isinstance(given, list) and given else given
        return given if isinstance(given, str) else _asset_key(given) if isinstance(given, ForeignCall) else None
    return None


def _module_of(value: Any) -> Module | None:
    if isinstance(value, StepFunction | FlowFunction):
        return value.function.scope.module
    return value.scope.module if isinstance(value, SourceFunction | ForeignCall) else None

"""Which worker config a task uses, and whether it allows the requested resources."""

from __future__ import annotations

from collections.abc import Mapping

from ork.definition.problems import quoted
from ork.definition.quantities import memory_text
from ork.definition.report import ProblemReport, Suggester
from ork.definition.tasks import ParsedTask
from ork.definition.workers_file import ALL, DEFAULT
from ork.definition.workflow_file import ParsedWorkflow
from ork.model.infra import Resources, Where, WorkerConfig
from ork.model.workflow import TaskSpec

_ANYWHERE = (None, Where.CLOUDRUN, Where.KUBERNETES)


def config_for(spec: TaskSpec, configs: Mapping[str, WorkerConfig]) -> WorkerConfig | None:
    """The config that the task names, else the default; None if the default is for another kind of task."""
    named = configs.get(spec.worker or DEFAULT) or configs.get(DEFAULT)
    return named if named is not None and fits(spec, named) else None


def fits(spec: TaskSpec, config: WorkerConfig) -> bool:
    """A config without `where` can run any task, and so can one for a platform: `ork.compile.placement` checks the rest."""
    return config.where in (*_ANYWHERE, Where.LOCAL if spec.image is None else Where.DOCKER)


def broken_config(spec: TaskSpec, broken: Mapping[str, str]) -> str | None:
    """Why the task's config cannot be used; None if it can, or the task has none."""
    if not broken:
        return None
    name = spec.worker or DEFAULT
    why = broken.get(name) or (broken.get(ALL) if spec.worker is not None else None)
    return f"worker config {quoted(name)} cannot be used: {why}" if why is not None else None


def check_workers(
    parsed: ParsedWorkflow, configs: Mapping[str, WorkerConfig], report: ProblemReport, broken: Mapping[str, str]
) -> None:
    """Check that each config a task names exists and can run it, and that no task exceeds its resources."""
    for task in parsed.tasks.values():
        why = broken_config(task.spec, broken) if task.spec.worker is not None else None
        if why is not None:
            report.add("ORK606", why, task.node_at("worker"), hint="correct it: `ork validate workers.yaml`")
            continue
        # A config named in `defaults` applies only to the tasks that it can run.
        if task.spec.worker is not None and (task.body.get("worker") is not None or task.spec.worker not in configs):
            _check_name(task, task.spec.worker, configs, report)
        if task.spec.resources is not None and task.is_complete:
            _check_size(task, task.spec.resources, config_for(task.spec, configs), report)


def _check_name(task: ParsedTask, name: str, configs: Mapping[str, WorkerConfig], report: ProblemReport) -> None:
    config = configs.get(name)
    if config is None:
        hint = Suggester(configs).hint(name) or (
            f"workers.yaml has: {', '.join(sorted(configs))}" if configs else "write one into workers.yaml"
        )
        report.add("ORK606", f"there is no worker config {quoted(name)}", task.node_at("worker"), hint=hint)
    elif task.is_complete and not fits(task.spec, config):
        hint = "name an `image`" if task.spec.image is None else "use one with `where: docker`"
        message = f"worker config {quoted(name)} is for {config.where}, and cannot run this task"
        report.add("ORK606", message, task.node_at("worker"), hint=hint)


def _check_size(task: ParsedTask, asked: Resources, config: WorkerConfig | None, report: ProblemReport) -> None:
    if config is None:
        return
    allowed = config.resources
    if asked.cpu is not None and allowed.cpu is not None and asked.cpu > allowed.cpu:
        _refuse(task, "cpu", f"{asked.cpu:g} processors", f"{allowed.cpu:g}", config, report)
    if asked.memory is not None and allowed.memory is not None and asked.memory > allowed.memory:
        _refuse(task, "memory", memory_text(asked.memory), memory_text(allowed.memory), config, report)


def _refuse(task: ParsedTask, key: str, asked: str, allowed: str, config: WorkerConfig, report: ProblemReport) -> None:
    message = f"task {quoted(task.spec.name)} asks for {asked}, more than the {allowed} of worker config {config.name}"
    report.add("ORK607", message, task.node_at("resources", key), hint="ask for less, or name a larger config")

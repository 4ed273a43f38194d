"""Loads a workflow file: returns a compiled workflow, or all problems found."""

from __future__ import annotations

import gc
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from ork.compile.files import FileExists, Files, Findings, ReadFile
from ork.compile.graph import link
from ork.compile.project import codecs_of, import_folders
from ork.definition.custom import custom_executors
from ork.definition.nodes import Node
from ork.definition.problems import Problem, quoted, render_concise
from ork.definition.project import Project
from ork.definition.report import ProblemReport, Suggester
from ork.definition.tasks import ParsedTask
from ork.definition.workflow_file import ParsedWorkflow, read_tree, read_workflow
from ork.errors import DefinitionError
from ork.model.record import replaced
from ork.model.secret import declaration_lines, is_reserved
from ork.model.trees import pointers
from ork.model.workflow import CompiledWorkflow, Custom, Secret, TaskSpec

if TYPE_CHECKING:
    from ork.compile.dbt import ReadNodes
    from ork.definition.project import Project


_LARGE = 1024 * 1024


class WorkflowDraft(NamedTuple):
    """A file as far as it could be parsed, for further checks."""

    workflow: CompiledWorkflow
    parsed: ParsedWorkflow
    report: ProblemReport
    found: Findings = Findings()


class Loaded(NamedTuple):
    """A workflow without problems, or problems without a workflow. `draft` is None if nothing could be parsed."""

    workflow: CompiledWorkflow | None
    problems: tuple[Problem, ...] = ()
    draft: WorkflowDraft | None = None

    def require(self) -> CompiledWorkflow:
        """The workflow. Raises DefinitionError with the problems if there are any."""
        if self.workflow is None:
            raise DefinitionError("; ".join(map(render_concise, self.problems[:3])), self.problems)
        return self.workflow


def load_workflow(
    text: bytes,
    file: str,
    *,
    read: ReadFile | None,
    exists: FileExists | None = None,
    known_executors: Collection[str] | None = None,
    root: str = ".",
    project: Project | None = None,
    imports: ReadNodes | None = None,
) -> Loaded:
    """Never raises because of the file's content. `read` and `exists` get paths relative to `root`; without `read`,
    files are not checked."""
    with _gc_paused(len(text)):
        report = ProblemReport(file)
        parsed = read_workflow(text, report, known_executors, custom_executors(project))
        return _compile(parsed, report, read, exists, root, project, imports)


def load_tree(
    tree: Node,
    report: ProblemReport,
    *,
    read: ReadFile | None,
    exists: FileExists | None = None,
    known_executors: Collection[str] | None = None,
    root: str = ".",
    project: Project | None = None,
    imports: ReadNodes | None = None,
) -> Loaded:
    """Like `load_workflow`, for a definition that is not YAML text. Without `read`, files are not checked."""
    parsed = read_tree(tree, report, known_executors, custom_executors(project))
    return _compile(parsed, report, read, exists, root, project, imports)


def _compile(
    parsed: ParsedWorkflow | None,
    report: ProblemReport,
    read: ReadFile | None,
    exists: FileExists | None,
    root: str,
    project: Project | None,
    imports: ReadNodes | None = None,
) -> Loaded:
    if parsed is None or report.is_full:
        return Loaded(None, report.problems())
    if parsed.imports:
        from ork.compile.dbt import add_imported

        if not add_imported(parsed, imports, exists or (lambda _path: False), report):
            return Loaded(None, report.problems())  # the dependencies are unknown
    links = link(parsed, report)
    _check_project_names(parsed, project, report)
    files = None
    if read is not None:
        is_there = exists or (lambda path: read(path) is not None)
        files = Files(read, is_there, report, parsed, root, project)
    tasks = tuple(_compiled(task, links[name], files) for name, task in parsed.tasks.items())
    findings = files.findings() if files is not None else Findings(annotated=frozenset(links))
    more = {"codecs": codecs_of(project, root), **import_folders(project, root)}
    workflow = replaced(_workflow(parsed, tasks), **more)
    return finish_draft(WorkflowDraft(workflow, parsed, report, findings))


def finish_draft(draft: WorkflowDraft) -> Loaded:
    """The workflow of a draft if its report has no problems."""
    is_clean = draft.report.is_clean
    return Loaded(draft.workflow if is_clean else None, draft.report.problems(), draft)


@contextmanager
def _gc_paused(size: int) -> Iterator[None]:
    """Pause garbage collection: a large file creates millions of objects that all stay, and scanning them doubles the
    time."""
    if size < _LARGE or not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _compiled(task: ParsedTask, depends_on: tuple[str, ...], files: Files | None) -> TaskSpec:
    spec = files.check(task, depends_on) if files is not None and task.is_complete else task.spec
    return spec if spec.depends_on == depends_on else replaced(spec, depends_on=depends_on)


def _workflow(parsed: ParsedWorkflow, tasks: tuple[TaskSpec, ...]) -> CompiledWorkflow:
    return CompiledWorkflow(
        name=parsed.name,
        tasks=tasks,
        description=parsed.description,
        params=parsed.params,
        schedule=parsed.schedule,
        max_active_runs=parsed.max_active_runs,
        fail_fast=parsed.fail_fast,
        alerts=parsed.alerts,
        types=parsed.types,
        budget=parsed.budget,
    )


def _check_project_names(parsed: ParsedWorkflow, project: Project | None, report: ProblemReport) -> None:
    """Check names against ork.yaml. If it lists pools, other pool names are mistakes.

    Worker configs and alerts must always be defined.
    """
    if any(task.spec.worker or task.spec.resources for task in parsed.tasks.values()):
        from ork.compile.workers import check_workers

        workers = project.workers if project is not None else {}
        if workers is not None:
            check_workers(parsed, workers, report, project.broken_workers if project is not None else {})
    if project is None:
        return
    if project.found_secrets is not None:  # else this is not the installation that runs the tasks
        check_secrets(parsed, project, report)
        if _may_be_placed(parsed, project):
            from ork.compile.placement import check_placement

            check_placement(parsed, project, report)
    if project.alerts is not None:
        for index, alert in enumerate(parsed.alerts):
            if alert not in project.alerts:
                define = f"define it in ork.yaml: `alerts: {{{alert}: {{webhook: https://…}}}}`"
                place = parsed.node_at("alerts", index)
                likely = Suggester(project.alerts).hint(alert)
                report.add("ORK208", f"ork.yaml has no alert {quoted(alert)}", place, hint=likely or define)
    if project.pools:
        for task in parsed.tasks.values():
            pool = task.spec.pool
            if pool is not None and pool not in project.pools:
                hint = Suggester(project.pools).hint(pool)
                report.add("ORK207", f"ork.yaml has no pool {quoted(pool)}", task.node_at("pool"), hint=hint)


def _may_be_placed(parsed: ParsedWorkflow, project: Project) -> bool:
    """True if a task may run elsewhere than on this machine or its container engine."""
    return (
        project.default_where is not None
        or any(config.where == "cloudrun" for config in (project.workers or {}).values())
        or any(task.spec.executor == "cloudrun" for task in parsed.tasks.values())
    )


def check_secrets(parsed: ParsedWorkflow, project: Project, report: ProblemReport) -> None:
    """Check that each secret used is declared for the workflow. Skipped if `.env` was not read."""
    if project.found_secrets is None:
        return
    for task in parsed.tasks.values():
        for name, path in _named(task):
            refusal = _refusal(name, parsed.name, project)
            if refusal is not None:
                message, hint = refusal
                report.add("ORK211", message, task.node_at(*path), hint=hint)


def _named(task: ParsedTask) -> Iterator[tuple[str, tuple[str | int, ...]]]:
    """Yield the secrets that a task uses, each with its path."""
    for part, values in (("inputs", task.spec.inputs), ("env", task.spec.env)):
        for key, value in values:
            if isinstance(value, Secret):
                yield value.name, (part, key)
    action = task.spec.action
    if isinstance(action, Custom):
        for tree, start in ((action.task, "config"), (action.config, "executor")):
            for pointer, path in pointers(tree):
                if isinstance(pointer, Secret):
                    yield pointer.name, (start, *path)


def _refusal(name: str, workflow: str, project: Project) -> tuple[str, str] | None:
    """The problem and a hint if the workflow may not use the secret."""
    if is_reserved(name):
        return f"{quoted(name)} is reserved for Ork and never passed to a task", "name another secret"
    declared = project.secrets.get(name)
    if declared is None and name not in (project.found_secrets or ()):
        hint = f"add `{declaration_lines(name)}` to ork.yaml, or a line {name}=… to .env"
        return f"the project declares no secret {quoted(name)}", hint
    if declared is not None and not declared.is_for(workflow):
        hint = f"add {workflow} to `workflows` of secrets.{name} in ork.yaml"
        return f"ork.yaml does not give secret {quoted(name)} to workflow {quoted(workflow)}", hint
    return None

"""From the text of a file to a compiled workflow, or to the list of everything that is wrong with it."""

from __future__ import annotations

import gc
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from ork.compile.files import FileExists, Files, ReadFile
from ork.compile.graph import link
from ork.definition.problems import Problem, quoted, render_concise
from ork.definition.report import Report, Suggester
from ork.definition.tasks import WrittenTask
from ork.definition.workflow_file import WrittenWorkflow, read_workflow
from ork.errors import DefinitionError
from ork.model.workflow import CompiledWorkflow, TaskSpec

if TYPE_CHECKING:
    from ork.definition.project_file import Project

_LARGE = 1024 * 1024


class Loaded(NamedTuple):
    """A workflow without problems, or problems without a workflow."""

    workflow: CompiledWorkflow | None
    problems: tuple[Problem, ...] = ()

    def require(self) -> CompiledWorkflow:
        """The workflow, or a DefinitionError that holds the problems."""
        if self.workflow is None:
            raise DefinitionError("; ".join(map(render_concise, self.problems[:3])), self.problems)
        return self.workflow


def load_workflow(
    text: bytes,
    file: str,
    *,
    read: ReadFile,
    exists: FileExists | None = None,
    known_executors: Collection[str] | None = None,
    root: str = ".",
    project: Project | None = None,
) -> Loaded:
    """Never raises because of what the file says. `read` and `exists` are asked for paths relative to `root`."""
    with _collector_at_rest(len(text)):
        return _load(text, Report(file), read, exists, known_executors, root, project)


def _load(
    text: bytes,
    report: Report,
    read: ReadFile,
    exists: FileExists | None,
    known_executors: Collection[str] | None,
    root: str,
    project: Project | None,
) -> Loaded:
    written = read_workflow(text, report, known_executors)
    if written is None or report.is_full:
        return Loaded(None, report.problems())
    links = link(written, report)
    _check_project_names(written, project, report)
    files = Files(
        read,
        exists or (lambda path: read(path) is not None),
        report,
        written,
        root,
        project.script_dir if project else None,
    )
    tasks = tuple(_compiled(task, links[name], files) for name, task in written.tasks.items())
    if not report.is_clean:
        return Loaded(None, report.problems())
    return Loaded(_workflow(written, tasks))


@contextmanager
def _collector_at_rest(size: int) -> Iterator[None]:
    """A large file makes millions of objects that all stay: looking for garbage among them doubles the time."""
    if size < _LARGE or not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _compiled(task: WrittenTask, depends_on: tuple[str, ...], files: Files) -> TaskSpec:
    spec = files.check(task, depends_on) if task.is_complete else task.spec
    return spec if spec.depends_on == depends_on else replace(spec, depends_on=depends_on)


def _workflow(written: WrittenWorkflow, tasks: tuple[TaskSpec, ...]) -> CompiledWorkflow:
    return CompiledWorkflow(
        name=written.name,
        tasks=tasks,
        description=written.description,
        params=written.params,
        schedule=written.schedule,
        max_active_runs=written.max_active_runs,
        fail_fast=written.fail_fast,
        alerts=written.alerts,
    )


def _check_project_names(written: WrittenWorkflow, project: Project | None, report: Report) -> None:
    """Where ork.yaml lists pools or alerts, a name that is not among them is a mistake, not a new one."""
    if project is None:
        return
    if project.alerts:
        for index, alert in enumerate(written.alerts):
            if alert not in project.alerts:
                hint = Suggester(project.alerts).hint(alert)
                report.add(
                    "ORK208", f"ork.yaml has no alert {quoted(alert)}", written.place("alerts", index), hint=hint
                )
    if project.pools:
        for task in written.tasks.values():
            pool = task.spec.pool
            if pool is not None and pool not in project.pools:
                hint = Suggester(project.pools).hint(pool)
                report.add("ORK207", f"ork.yaml has no pool {quoted(pool)}", task.place("pool"), hint=hint)

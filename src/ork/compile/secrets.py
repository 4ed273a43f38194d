"""Checks that the project declares the secrets that a workflow's tasks use."""

from __future__ import annotations

from collections.abc import Iterator

from ork.definition.problems import quoted
from ork.definition.project import Project
from ork.definition.report import Report
from ork.definition.tasks import ParsedTask
from ork.definition.workflow_file import ParsedWorkflow
from ork.model.secret import declaration_lines, is_reserved
from ork.model.trees import pointers
from ork.model.workflow import Custom, Secret


def check_secrets(parsed: ParsedWorkflow, project: Project, report: Report) -> None:
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

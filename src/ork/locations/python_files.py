"""Workflows in Python: the documents they produce, parsed by the same code as YAML."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ork.compile.files import FileExists, ReadFile
from ork.compile.load import Loaded, load_tree
from ork.definition.document_tree import document_tree
from ork.definition.problems import Problem
from ork.definition.python_positions import PythonPositions
from ork.definition.report import ProblemReport
from ork.locations.inspect import Inspected

if TYPE_CHECKING:
    from ork.compile.dbt import ReadNodes
    from ork.definition.project import Project

_NO_WORKFLOW_HINT = 'make one at the top level of the file: `etl = Workflow("etl")`'


class PythonWorkflow(NamedTuple):
    """`file` is for display. `is_own`: defined by the given file, not only used by it."""

    name: str
    file: str
    loaded: Loaded
    is_own: bool


class PythonFile(NamedTuple):
    """Either workflows, or why there are none."""

    workflows: tuple[PythonWorkflow, ...]
    problems: tuple[Problem, ...] = ()


def load_python(
    inspected: Inspected,
    file: str,
    *,
    root: str,
    interpreter: str,
    read: ReadFile,
    exists: FileExists,
    project: Project | None = None,
    imports: ReadNodes | None = None,
) -> PythonFile:
    """`file` is as given by a person; `read` and `exists` get paths relative to `root`, its folder."""
    folder = os.path.dirname(file)
    if inspected.errors:
        return PythonFile((), tuple(_problem(error, file, interpreter) for error in inspected.errors))
    workflows = []
    for each in inspected.workflows:
        shown = os.path.join(folder, each["file"])
        source = (read(each["file"]) or b"").decode("utf-8", "replace")
        tree = document_tree(each["document"], source, each["line"], each["task_lines"])
        report = ProblemReport(shown, source)
        add_mistakes(report, each["mistakes"])
        loaded = load_tree(tree, report, read=read, exists=exists, root=root, project=project, imports=imports)
        workflows.append(PythonWorkflow(str(each["document"]["name"]), shown, loaded, each["is_own"]))
    if not any(workflow.is_own for workflow in workflows):
        problem = Problem("ORK511", "this file defines no workflow", file, hint=_NO_WORKFLOW_HINT)
        return PythonFile((), (problem,))
    return PythonFile(tuple(workflows))


def add_mistakes(report: ProblemReport, mistakes: Iterable[Mapping[str, Any]]) -> None:
    """Add mistakes that only a Python file can have; each has `code`, `message`, `line` and `hint`."""
    sources = PythonPositions(report.text)
    for mistake in mistakes:
        line, column, width = sources.definition_span(mistake["line"])
        report.add_at(mistake["code"], mistake["message"], line, column, width=width, hint=mistake["hint"])


def _problem(error: dict[str, Any], file: str, interpreter: str) -> Problem:
    """A problem at the innermost line of user code."""
    folder = os.path.dirname(file)
    summary = f"{error['type']}: {error['message']}" if error["message"] else error["type"]
    message = f"this file cannot be loaded: {summary}" if error["frames"] else error["message"]
    hint = f"it was loaded by {interpreter}" if error["type"] in ("ModuleNotFoundError", "ImportError") else None
    if not error["frames"]:
        return Problem("ORK510", message, file, hint=hint)
    frame = error["frames"][-1]
    start, end = frame["caret"] or (0, max(len(frame["source"]), 1))
    return Problem(
        "ORK510", message, os.path.join(folder, frame["file"]), frame["line"], start + 1, end + 1, frame["source"], hint
    )

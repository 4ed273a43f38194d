"""Writes an imported project to a folder, once it is known to be valid."""

from __future__ import annotations

import os
import re
import tempfile
from typing import TYPE_CHECKING, Any

from ork.errors import RefusedError, UsageError
from ork.importers.project import ImportedProject, ImportedTask, ImportedWorkflow, Level
from ork.importers.report import report_text
from ork.importers.yaml_text import yaml_text

if TYPE_CHECKING:
    from ork.definition.problems import Problem

REPORT = "REPORT.md"
MAX_REPAIRS = 50
SCHEMA_LINE = "# yaml-language-server: $schema=.ork/workflow.schema.json\n"
_TASK_LINE = re.compile(r"  (\S+):")
_KEY_LINE = re.compile(r"(\w+):")
_ORDER = (
    *("executor", "file", "module", "function", "command", "workflow", "image", "output", "config", "foreach"),
    *("depends_on", "inputs", "env", "run_if", "when"),
)


def write_project(project: ImportedProject, folder: str) -> list[str]:
    """Writes the project and its report, and returns the files. The folder must be new or empty.

    Everything is written beside it first and then renamed, so an interrupted import leaves no half project.
    """
    folder = os.path.abspath(folder)
    refuse_used_folder(folder)
    parent = os.path.dirname(folder)
    try:
        os.makedirs(parent, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".ork-import-", dir=parent) as scratch:
            work = os.path.join(scratch, "project")
            os.mkdir(work)
            written = _write_all(project, work)
            if os.path.isdir(folder):
                os.rmdir(folder)
            os.rename(work, folder)
    except OSError as error:
        raise UsageError(f"cannot write to {folder}: {error.strerror}; nothing was left there") from error
    return written


def refuse_used_folder(folder: str) -> None:
    if os.path.islink(folder) or (os.path.exists(folder) and not os.path.isdir(folder)):
        raise RefusedError(f"{folder} is not a folder: nothing was written", hint="name a new folder: -o DIR")
    if os.path.isdir(folder) and os.listdir(folder):
        raise RefusedError(f"{folder} is not empty: nothing was written", hint="name a new folder: -o DIR")


def _write_all(project: ImportedProject, folder: str) -> list[str]:
    files = {path: text for path, text in project.files.items() if text}
    if project.requirements:
        files["requirements.txt"] = "".join(f"{name}\n" for name in sorted(project.requirements, key=str.lower))
    files["ork.yaml"] = project_text(project)
    for path, text in files.items():
        _write(folder, path, text)
    for workflow in project.workflows:
        path = f"{workflow.name}.yaml"
        _write(folder, path, workflow_text(workflow))
        _make_valid(workflow, folder, path)
        files[path] = ""
    _write(folder, REPORT, report_text(project))
    return sorted([*files, REPORT])


def _write(folder: str, path: str, text: str) -> None:
    target = os.path.join(folder, path)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(target, "w", encoding="utf-8") as out:
        out.write(text)


def _make_valid(workflow: ImportedWorkflow, folder: str, path: str) -> None:
    """Leaves to a person what Ork does not accept, so that the rest of the project can be used."""
    for _ in range(MAX_REPAIRS):
        problems = _problems(folder, path)
        if not problems:
            return
        for problem in problems:
            _repair(workflow, problem, os.path.join(folder, path))
        _write(folder, path, workflow_text(workflow))
    raise UsageError(f"the imported workflow {workflow.name} is not valid: {problems[0].message}")


def _problems(folder: str, path: str) -> tuple[Problem, ...]:
    from ork.definition.project_file import load_project
    from ork.locations.files import FileContext, read_definition

    with open(os.path.join(folder, "ork.yaml"), "rb") as source:
        loaded, _ = load_project(source.read(), "ork.yaml")
    return read_definition(os.path.join(folder, path), FileContext(loaded)).problems


def _repair(workflow: ImportedWorkflow, problem: Problem, file: str) -> None:
    if os.path.basename(problem.file) != os.path.basename(file):
        for task in workflow.tasks.values():
            if problem.file.endswith(str(task.keys.get("file", "\0"))):
                task.leave_to_a_person(f"{problem.message} ({problem.code})")
        return
    with open(file, encoding="utf-8") as source:
        lines = source.read().split("\n")[: problem.line]
    begin = next((index for index, line in enumerate(lines) if line == "tasks:"), len(lines))
    found = [match[1].strip("'\"") for line in lines[begin + 1 :] if (match := _TASK_LINE.match(line))]
    if found and found[-1] in workflow.tasks:
        task = workflow.tasks[found[-1]]
        task.depends_on = [name for name in task.depends_on if name in workflow.tasks]
        task.leave_to_a_person(f"{problem.message} ({problem.code})")
        return
    keys = [
        match[1] for line in lines[:begin] if (match := _KEY_LINE.match(line)) and match[1] not in ("name", "tasks")
    ]
    if keys:
        workflow.keys.pop(keys[-1], None)
        workflow.note(Level.PERSON, f"`{keys[-1]}` was left out: {problem.message}")
        return
    for task in workflow.tasks.values():  # a problem of the whole graph, such as a cycle
        task.depends_on = []
    workflow.note(Level.PERSON, f"the dependencies were left out: {problem.message}")


def workflow_text(workflow: ImportedWorkflow) -> str:
    """The workflow's YAML file."""
    tasks = {name: _task_map(task) for name, task in workflow.tasks.items()}
    head = yaml_text(
        {"name": workflow.name} | {key: value for key, value in workflow.keys.items() if value is not None}
    )
    body = "".join(
        f"  # {task.origin}, {task.place}\n{_indented({name: tasks[name]})}" for name, task in workflow.tasks.items()
    )
    return f"{SCHEMA_LINE}# Imported from {workflow.place}\n{head}tasks:\n{body}"


def _task_map(task: ImportedTask) -> dict[str, Any]:
    keys = dict(task.keys)
    if task.depends_on:
        keys["depends_on"] = list(dict.fromkeys(task.depends_on))
    ordered = [key for key in _ORDER if key in keys] + [key for key in keys if key not in _ORDER]
    return {key: keys[key] for key in ordered if keys[key] not in (None, {}, [])}


def _indented(value: Any) -> str:
    return "".join(f"  {line}" if line.strip() else line for line in yaml_text(value).splitlines(keepends=True))


def project_text(project: ImportedProject) -> str:
    """The text of ork.yaml."""
    keys: dict[str, Any] = {}
    if project.pools:
        keys["pools"] = project.pools
    if project.executors:
        keys["executors"] = project.executors
    if project.pass_env:
        keys["pass_env"] = sorted(set(project.pass_env))
    if project.secrets:
        keys["secrets"] = {name: {"from": "env"} for name in sorted(project.secrets)}
    if project.alerts:
        keys["alerts"] = project.alerts
    if project.outbound:
        keys["outbound"] = {"allow": project.outbound}
    head = "# Settings of all workflows in this folder. REPORT.md says what needs a value.\n"
    return head + (yaml_text(keys) if keys else "") + ("" if project.alerts else ALERTS_HINT)


ALERTS_HINT = """\
# To be told about failures, remove the marks below and set the secret (see docs: alerts):
# alerts:
#   ops: {webhook: {secret: OPS_WEBHOOK}, every_workflow: true}
"""

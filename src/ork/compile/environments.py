"""Checks the environments of tasks: their files exist and are valid, and the task can use one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ork.definition.problems import quoted
from ork.definition.tasks import ParsedTask
from ork.model.record import replaced
from ork.model.script_header import HeaderError, read_script_header
from ork.model.workflow import Environment, PythonCall, SubWorkflow, TaskSpec

if TYPE_CHECKING:
    from ork.compile.files import Files


def check_environment(task: ParsedTask, spec: TaskSpec, environment: Environment, files: Files) -> TaskSpec:
    """The task, without an environment inherited from `defaults` that it cannot use."""
    if spec.image is None:
        environment = _located(environment, files)
        spec = replaced(spec, environment=environment)
    why = _no_use(spec, environment)
    if why is None and environment.script and not _has_header(task, spec, files):
        # Inherited from `defaults`: a script without a header has no requirements.
        return replaced(spec, environment=None)
    if why is None:
        _check_place(task, spec, environment, files)
        return spec
    if task.body.get("environment") is not None:
        files.report.add("ORK506", f"task {quoted(spec.name)} {why}", task.node_at("environment"), hint="remove it")
    return replaced(spec, environment=None)


def _located(environment: Environment, files: Files) -> Environment:
    path, file = (each and files.locate(each) for each in (environment.path, environment.requirements_file))
    return replaced(environment, path=path, requirements_file=file)


def _no_use(spec: TaskSpec, environment: Environment) -> str | None:
    if isinstance(spec.action, SubWorkflow):
        return "runs another workflow, whose tasks have environments of their own"
    is_file = isinstance(spec.action, PythonCall) and spec.action.file is not None
    return "has no Python file whose header could be read" if environment.script and not is_file else None


def _check_place(task: ParsedTask, spec: TaskSpec, environment: Environment, files: Files) -> None:
    place = task.node_at("environment")
    if environment.path is not None and not files.has(f"{environment.path}/bin/python"):
        message = f"there is no virtual environment {quoted(environment.path)}"
        hint = f"make it with `python -m venv {environment.path}`, or write `{{requirements: […]}}`"
        files.report.add("ORK506", message, place, hint=hint)
    elif environment.requirements_file is not None and not files.has(environment.requirements_file):
        message = f"task {quoted(spec.name)}: there is no file {quoted(environment.requirements_file)}"
        files.report.add("ORK501", message, place, hint="requirements themselves are written as a list")


def _has_header(task: ParsedTask, spec: TaskSpec, files: Files) -> bool:
    file = str(spec.action.file) if isinstance(spec.action, PythonCall) else ""
    content = files.read(file.removeprefix("./"))
    if content is None:
        return False  # already reported
    place = task.node_at("environment")
    try:
        header = read_script_header(content.decode("utf-8", "replace"))
    except HeaderError as error:
        files.report.add("ORK506", f"{quoted(file)}: {error}", place)
        return True
    if header is None and place.value == "script":
        hint = 'begin it with `# /// script`, `# dependencies = ["pandas"]`, `# ///`'
        files.report.add("ORK506", f"{quoted(file)} has no header that names requirements", place, hint=hint)
    return header is not None

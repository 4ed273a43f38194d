"""Config files of tasks with custom executors (`config_file`): read, checked, and merged with the task's `config`."""

from __future__ import annotations

from collections.abc import Callable

from ork.definition.custom import BUILT_IN, read_config
from ork.definition.keys import Reading
from ork.definition.nodes import Kind, is_null
from ork.definition.problems import quoted
from ork.definition.report import ProblemReport, Suggester
from ork.definition.tasks import ParsedTask
from ork.definition.yaml_tree import parse_yaml
from ork.model.record import replaced
from ork.model.trees import Tree, merged, pointers
from ork.model.workflow import Custom, Ref, TaskSpec


def with_config_file(
    task: ParsedTask, action: Custom, read: Callable[[str], bytes | None], report: ProblemReport
) -> TaskSpec:
    """The task with the content of its file merged into its config; keys of the task itself take precedence."""
    _check_keys(task, action, report)
    file = task.body.get("config_file")
    if file is None or is_null(file):
        return task.spec
    content = read(str(file.value).removeprefix("./"))
    if content is None:
        message = f"task {quoted(task.spec.name)}: there is no file {quoted(str(file.value))}"
        report.add("ORK501", message, file, hint="paths begin at this file's folder")
        return task.spec
    tree = _read(content, str(file.value), report)
    if tree is None:
        return task.spec
    whole = tree if action.task is None else merged(tree, action.task)
    return replaced(task.spec, action=replaced(action, task=whole))


def _check_keys(task: ParsedTask, action: Custom, report: ProblemReport) -> None:
    """Check the keys of built-in executors. Only the class of any other executor knows its keys."""
    known = _built_in_keys(action.target)
    config = task.body.get("config")
    for key, _ in config.pairs() if known and config is not None and config.kind == Kind.MAP else ():
        if key.value not in known:
            hint = Suggester(known).hint(key.value) or f"known here: {', '.join(known)}"
            message = f"{quoted(key.value)} is not a key of the executor {quoted(task.spec.executor)}"
            report.add("ORK101", message, key, hint=hint)


def _built_in_keys(target: str) -> list[str]:
    if target == BUILT_IN["http"].target:
        from ork.sdk.http import HttpExecutor

        return list(HttpExecutor.TaskConfig.__dataclass_fields__)
    if target == BUILT_IN["sql"].target:
        from ork.sdk.sql import SqlExecutor

        return list(SqlExecutor.TaskConfig.__dataclass_fields__)
    if target == BUILT_IN["notebook"].target:
        from ork.sdk.notebook import NotebookExecutor

        return list(NotebookExecutor.TaskConfig.__dataclass_fields__)
    return []


def _read(content: bytes, file: str, report: ProblemReport) -> Tree | None:
    """Parse YAML or JSON. Problems have their position in the file."""
    own = ProblemReport(file)
    root = parse_yaml(content, own)
    tree = None if root is None else read_config(root, Reading(own))
    if root is not None and any(isinstance(pointer, Ref) for pointer, _ in pointers(tree)):
        hint = "write it in the task's `config`, which takes precedence over the file"
        own.add("ORK603", "a config file cannot contain a `ref`", root, hint=hint)
    for problem in own.problems():
        report.add_problem(problem)
    return tree if own.is_clean else None

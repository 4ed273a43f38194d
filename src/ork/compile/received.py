"""Validates a compiled workflow received from outside: accepts only what the compiler could have produced."""

from __future__ import annotations

import re
from typing import Any

from ork.compile.content import from_document, to_document
from ork.errors import DefinitionError
from ork.model.ids import NAME_PATTERN
from ork.model.workflow import Approval, CloudRunJob, CompiledWorkflow, Container, SubWorkflow, TaskSpec

_Number = (int, float)
_OPTIONAL_NUMBERS = ("retry_delay", "timeout", "cache")
_WHOLE_NUMBERS = ("retries", "priority")
_OPTIONAL_TEXTS = ("pool", "output_type", "image", "worker")


def received_workflow(document: Any) -> CompiledWorkflow:
    """The workflow of an untrusted document. Raises DefinitionError. Linear in the document's size."""
    try:
        workflow = from_document(document)
        is_same = to_document(workflow) == document
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError) as error:
        raise DefinitionError(f"not a compiled workflow: {error!r}") from None
    if not is_same:
        raise DefinitionError("not a compiled workflow: it is inconsistent")
    _check_names(workflow)
    if not all(isinstance(path, str) for path in (workflow.project or "", *workflow.pythonpath)) or not all(
        len(codec) == 2 and all(isinstance(part, str) for part in codec) for codec in workflow.codecs
    ):
        raise DefinitionError("not a compiled workflow: a folder or a codec is text")
    if workflow.budget is not None and not (_is_number(workflow.budget.usd) and workflow.budget.usd > 0):
        raise DefinitionError("not a compiled workflow: a budget is a number of dollars")
    for spec in workflow.tasks:
        _check_values(spec)
        _check_executor(spec)
    _check_graph(workflow)
    return workflow


def _check_names(workflow: CompiledWorkflow) -> None:
    names = {spec.name for spec in workflow.tasks}
    if not names or len(names) != len(workflow.tasks):
        raise DefinitionError("a workflow needs tasks with unique names")
    every: list[Any] = [workflow.name, *names]
    if not all(isinstance(name, str) and re.fullmatch(NAME_PATTERN, name) for name in every):
        raise DefinitionError("a name is letters, digits, `_`, `-` and `.`")


def _check_values(spec: TaskSpec) -> None:
    """Check the types of fields that the state machine computes with or looks up."""
    numbers = [getattr(spec, name) for name in _OPTIONAL_NUMBERS]
    whole = [*(getattr(spec, name) for name in _WHOLE_NUMBERS), spec.concurrency or 1]
    texts = [spec.executor, *spec.depends_on, *(getattr(spec, name) or "" for name in _OPTIONAL_TEXTS)]
    texts += [name for name, _ in (*spec.inputs, *spec.env)]
    if not (
        all(number is None or _is_number(number) for number in numbers)
        and all(type(number) is int for number in whole)
        and all(isinstance(text, str) for text in texts)
    ):
        raise DefinitionError(f"not a compiled workflow: task {spec.name} has a value of the wrong type")


def _check_executor(spec: TaskSpec) -> None:
    """Check that a task with an image runs in it, and that a task without a process starts none."""
    kinds = {SubWorkflow: "workflow", Approval: "approval", Container: "container", CloudRunJob: "cloudrun"}
    of_action = kinds.get(type(spec.action))
    is_in_image = spec.image is not None
    wanted = of_action or ("container" if is_in_image else spec.executor)
    if spec.executor != wanted or is_in_image != (wanted == "container"):
        raise DefinitionError(f"not a compiled workflow: task {spec.name} is not for executor {spec.executor}")


def _is_number(value: Any) -> bool:
    return type(value) in _Number and 0 <= value < 1e12


def _check_graph(workflow: CompiledWorkflow) -> None:
    """Check that dependencies exist and have no cycle."""
    waits_for = {spec.name: len(set(spec.depends_on)) for spec in workflow.tasks}
    below: dict[str, list[str]] = {name: [] for name in waits_for}
    for spec in workflow.tasks:
        for name in set(spec.depends_on):
            below.setdefault(name, []).append(spec.name)
    free = [name for name, count in waits_for.items() if count == 0]
    for name in free:  # grows during iteration
        for next_name in below[name]:
            waits_for[next_name] -= 1
            if waits_for[next_name] == 0:
                free.append(next_name)
    if len(free) != len(waits_for):
        raise DefinitionError("the tasks have a circular dependency, or depend on an unknown task")

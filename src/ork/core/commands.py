"""Which tasks a manual retry resets in a finished run."""

from __future__ import annotations

from collections.abc import Mapping

from ork.core.transitions import TaskStep, next_task_status
from ork.model.ids import TaskKey
from ork.model.run import RunCommand
from ork.model.task import Task, TaskStatus
from ork.model.workflow import CompiledWorkflow


def tasks_to_retry(workflow: CompiledWorkflow, tasks: Mapping[TaskKey, Task], command: RunCommand) -> list[TaskKey]:
    """All tasks that did not succeed; or the named task (or instance) and everything downstream of it; or all tasks."""
    if command.everything:
        return list(tasks)
    if command.task is None:
        return [key for key, task in tasks.items() if task.status is not TaskStatus.SUCCESS]
    named = parse_key(command.task)
    below = _below(workflow, named.name)
    chosen = {named, TaskKey(named.name)}
    return [
        key for key in tasks if key in chosen or key.name in below or (key.name == named.name and named.index is None)
    ]


def reset_for_retry(task: Task, is_whole: bool) -> Task:
    """A pending task with a fresh retry budget. Attempt numbers continue, so that the history is kept.

    `is_whole`: all instances of the task run again, so the fan-out is computed again.
    """
    return Task(
        task.key,
        next_task_status(task.key, task.status, TaskStep.REVIVE),
        task.executor,
        attempt=task.attempt,
        earlier_attempts=task.attempt,
        item=task.item,
        instances=None if is_whole else task.instances,
    )


def parse_key(text: str) -> TaskKey:
    """Parse `load`, or `load[3]` for one instance."""
    name, bracket, index = text.partition("[")
    return TaskKey(name, int(index[:-1])) if bracket and index[:-1].isdigit() else TaskKey(text)


def _below(workflow: CompiledWorkflow, name: str) -> set[str]:
    below: dict[str, list[str]] = {spec.name: [] for spec in workflow.tasks}
    for spec in workflow.tasks:
        for above in spec.depends_on:
            below[above].append(spec.name)
    found: set[str] = set()
    to_visit = [name]
    while to_visit:
        for lower in below.get(to_visit.pop(), []):
            if lower not in found:
                found.add(lower)
                to_visit.append(lower)
    return found

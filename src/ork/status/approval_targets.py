"""Finds the task that an approval or rejection is for. Invalid targets are refused at once, not ignored later."""

from __future__ import annotations

from ork.core.commands import parse_key
from ork.errors import RefusedError, UsageError
from ork.model.ids import TaskKey
from ork.model.workflow import Approval, NotBy
from ork.state.reading import StateReader
from ork.status.ids import RunTarget, pick_tasks
from ork.status.run_view import RunView
from ork.status.why_task import waits_for_approval


def named_task(view: RunView, target: RunTarget) -> str | None:
    """The target's task in the form that commands use; None if the target is a whole run."""
    if target.task is None:
        return None
    pick_tasks(view.tasks, target)
    return str(TaskKey(target.task, target.instance))


def waiting_task(view: RunView, target: RunTarget) -> str | None:
    """Like `named_task`, for a task that waits for approval. The name is optional if only one task waits."""
    named = named_task(view, target)
    # The store refuses commands for final runs with its own message.
    if view.run.status.is_final:
        return named
    if target.task is None:
        return _only_question(view)
    _check_waits(view, TaskKey(target.task, target.instance))
    return named


async def check_approver(store: StateReader, view: RunView, task: str, by: str) -> None:
    """RefusedError if the task's `not_by` excludes this person. The starter of a run is known by name only."""
    spec = view.specs.get(parse_key(task).name)
    action = spec.action if spec is not None else None
    if not isinstance(action, Approval) or action.not_by is not NotBy.STARTER:
        return
    if await store.get_starter(view.run.id) == by:
        raise RefusedError(
            f"{by} started run {view.short}, so another person has to approve `{task}` (`not_by: starter`)",
            hint=f"ork reject {view.short} {task}",
        )


def _only_question(view: RunView) -> str:
    waiting = [str(key) for key, task in view.tasks.items() if waits_for_approval(view, task)]
    if not waiting:
        raise RefusedError("no task of this run waits for a person", hint=f"ork show {view.short}")
    if len(waiting) > 1:
        raise UsageError(f"{len(waiting)} tasks wait for a person: {', '.join(waiting)}", hint="name one of them")
    return waiting[0]


def _check_waits(view: RunView, key: TaskKey) -> None:
    task = view.tasks[key]
    hint = f"ork why {view.short} {key}"
    if not isinstance(view.specs[key.name].action, Approval):
        raise RefusedError(f"`{key}` does not wait for a person: it has no `approval`", hint=hint)
    if not waits_for_approval(view, task):
        raise RefusedError(f"`{key}` does not wait for a person now: it is {task.status}", hint=hint)

"""Rows of tasks and attempts: partial updates where only progress is to be written (see `partial_updates`), whole rows otherwise."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from ork.core.effects import LaunchRequest
from ork.model.ids import TaskKey
from ork.model.task import Attempt, InlineOutput, Task, TaskStatus
from ork.state.partial_updates import is_plain_attempt, is_plain_progress
from ork.state.postgres.rows import attempt_row, task_row
from ork.state.records import RunChanges
from ork.state.rows import NO_INDEX, Columns

_LATER = 0  # the number of a change is given when every run of the commit is locked


class Share(NamedTuple):
    """One run's changes, and the places of its tasks in their workflow."""

    changes: RunChanges
    order: dict[str, int]


class Progress(NamedTuple):
    """What `ork.commit_step` is told of tasks and attempts: whole rows, new tasks, tasks that moved on together with their
    attempts, and what it is asked to launch (the tasks too, where they are to be written whole)."""

    tasks: list[Columns]
    attempts: list[Columns]
    added: list[Columns]
    moved: list[Columns]
    launched_tasks: list[Columns]
    launched_attempts: list[Columns]


def whole_progress(shares: Sequence[Share], launches: Sequence[tuple[Share, LaunchRequest]]) -> Progress:
    """Fits whatever the store holds."""
    tasks = [_task_row(share, task) for share in shares for task in _tasks(share)]
    attempts = [_attempt_row(share, attempt) for share in shares for attempt in _attempts(share)]
    launched_tasks = [_task_row(share, request.task) for share, request in launches]
    return Progress(tasks, attempts, [], [], launched_tasks, _launched_attempts(launches))


def partial_progress(shares: Sequence[Share], launches: Sequence[tuple[Share, LaunchRequest]]) -> Progress:
    """Assumes that new tasks are new in the store, and that the rows below partial updates are in the state before."""
    progress = Progress([], [], [], [], [], _launched_attempts(launches))
    for share in shares:
        _add_share(progress, share)
    return progress


def _add_share(progress: Progress, share: Share) -> None:
    moving: dict[TaskKey, Attempt] = {}
    for attempt in _attempts(share):
        if is_plain_attempt(attempt) and attempt.key.task not in moving:
            moving[attempt.key.task] = attempt
        else:
            progress.attempts.append(_attempt_row(share, attempt))
    for task in _tasks(share):
        attempt_of = moving.get(task.key)
        if attempt_of is not None and is_plain_progress(task) and _say_the_same(task, attempt_of):
            progress.moved.append(_moved(share, task, attempt_of))
            del moving[task.key]
        elif _looks_new(task):
            progress.added.append(_task_row(share, task))
        else:
            progress.tasks.append(_task_row(share, task))
    progress.attempts.extend(_attempt_row(share, attempt) for attempt in moving.values())


def _tasks(share: Share) -> Collection[Task]:
    """One statement cannot write a row twice: of several with the same key the last counts."""
    return {task.key: task for task in share.changes.tasks}.values()


def _attempts(share: Share) -> Collection[Attempt]:
    return {attempt.key: attempt for attempt in share.changes.attempts}.values()


def _looks_new(task: Task) -> bool:
    return task.status is TaskStatus.PENDING and task.attempt == 0 and task.cache_key is None and task.retry_at is None


def _say_the_same(task: Task, attempt: Attempt) -> bool:
    return (
        task.attempt == attempt.key.number
        and task.status._value_ == attempt.status._value_
        and task.started_at == attempt.started_at
        and task.finished_at == attempt.finished_at
        and task.exit_code == attempt.exit_code
    )


def _moved(share: Share, task: Task, attempt: Attempt) -> Columns:
    (name, index), output = task.key, task.output
    began, over, seen = task.started_at, task.finished_at, attempt.seen_at
    return (
        share.changes.run_id, share.order[name], NO_INDEX if index is None else index, task.attempt, task.status._value_,
        None if began is None else began.timestamp(), None if over is None else over.timestamp(), task.exit_code,
        output.json if isinstance(output, InlineOutput) else None, attempt.pool, attempt.seq,
        None if seen is None else seen.timestamp(),
    )  # fmt: skip


def _task_row(share: Share, task: Task) -> Columns:
    return task_row(share.changes.run_id, share.order[task.key.name], _LATER, task)


def _attempt_row(share: Share, attempt: Attempt) -> Columns:
    return attempt_row(share.order[attempt.key.task.name], attempt)


def _launched_attempts(launches: Sequence[tuple[Share, LaunchRequest]]) -> list[Columns]:
    return [_attempt_row(share, request.attempt) for share, request in launches]

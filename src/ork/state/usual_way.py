"""Which rows go the usual way: a store may write no more of those than what changes on it.

What a task was dispatched with (its item, its cache key, the attempts of earlier rounds) stays what it is until that
attempt has ended.
"""

from __future__ import annotations

from ork.model.task import Attempt, AttemptStatus, InlineOutput, Task, TaskStatus


def is_new(task: Task) -> bool:
    """Nothing has happened to it yet."""
    return (
        task.status is TaskStatus.PENDING
        and not task.attempt
        and not task.earlier_attempts
        and task.reason is None
        and task.cause is None
        and task.failure is None
        and task.exit_code is None
        and task.dispatched_at is None
        and task.started_at is None
        and task.finished_at is None
        and task.retry_at is None
        and task.output is None
        and task.instances is None
        and task.cache_key is None
    )


def is_on_its_way(task: Task) -> bool:
    """It has been dispatched in this round and is running now, or has succeeded, and nothing else is to be told of it."""
    if task.status is TaskStatus.RUNNING:
        is_usual = task.output is None and task.exit_code is None and task.finished_at is None
    else:
        is_usual = task.status is TaskStatus.SUCCESS and (task.output is None or isinstance(task.output, InlineOutput))
    return (
        is_usual
        and task.attempt > task.earlier_attempts
        and task.failure is None
        and task.reason is None
        and task.cause is None
        and task.retry_at is None
        and task.instances is None
    )


def goes_well(attempt: Attempt) -> bool:
    if attempt.status is AttemptStatus.RUNNING:
        is_usual = attempt.exit_code is None and attempt.finished_at is None
    else:
        is_usual = attempt.status is AttemptStatus.SUCCESS
    return is_usual and attempt.failure is None and attempt.closing is None and attempt.waits_for is None

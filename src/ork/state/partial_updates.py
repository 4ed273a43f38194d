"""Which rows may be written by a partial update: of these, a store writes only the columns that change.

What a task was dispatched with (its item, its cache key, the attempts of earlier rounds) does not change until that
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


def is_plain_progress(task: Task) -> bool:
    """It was dispatched in this round and is running now or has succeeded, and no other column has changed."""
    if task.status is TaskStatus.RUNNING:
        is_plain = task.output is None and task.exit_code is None and task.finished_at is None
    else:
        is_plain = task.status is TaskStatus.SUCCESS and (task.output is None or isinstance(task.output, InlineOutput))
    return (
        is_plain
        and task.attempt > task.earlier_attempts
        and task.failure is None
        and task.reason is None
        and task.cause is None
        and task.retry_at is None
        and task.instances is None
    )


def is_plain_attempt(attempt: Attempt) -> bool:
    """It is running or has succeeded, and no other column has changed."""
    if attempt.status is AttemptStatus.RUNNING:
        is_plain = attempt.exit_code is None and attempt.finished_at is None
    else:
        is_plain = attempt.status is AttemptStatus.SUCCESS
    return is_plain and attempt.failure is None and attempt.closing is None and attempt.waits_for is None

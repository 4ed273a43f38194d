"""Which rows go the usual way: a store may write no more of those than what changes on it.

What a task was dispatched with (its item, its cache key, the attempts of earlier rounds) stays what it is until that
attempt has ended.
"""

from __future__ import annotations

from ork.model.task import Attempt, AttemptStatus, InlineOutput, Task, TaskStatus


def is_on_its_way(task: Task) -> bool:
    """It has been dispatched in this round and is running now, or has succeeded, and nothing else is to be told of it."""
    return (
        (task.status is TaskStatus.RUNNING or task.status is TaskStatus.SUCCESS)
        and task.attempt > task.earlier_attempts
        and task.failure is None
        and task.reason is None
        and task.cause is None
        and task.retry_at is None
        and task.instances is None
        and (task.output is None or isinstance(task.output, InlineOutput))
    )


def goes_well(attempt: Attempt) -> bool:
    return (
        (attempt.status is AttemptStatus.RUNNING or attempt.status is AttemptStatus.SUCCESS)
        and attempt.failure is None
        and attempt.closing is None
        and attempt.waits_for is None
    )

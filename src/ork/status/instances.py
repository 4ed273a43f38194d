"""Counts the instances of a fanned-out task, which are shown as one line."""

from __future__ import annotations

from ork.model.ids import TaskKey
from ork.model.task import Task, TaskStatus


def is_group(task: Task) -> bool:
    """Whether the row represents a fan-out, whose instances have rows of their own."""
    return task.key.index is None and bool(task.instances)


class Instances:
    """The number of instances in each status, and the instances that failed or will be retried."""

    def __init__(self) -> None:
        self.counts: dict[TaskStatus, int] = dict.fromkeys(TaskStatus, 0)
        self.failed: dict[TaskKey, Task] = {}
        self.retrying: dict[TaskKey, Task] = {}

    def replace(self, before: Task | None, after: Task) -> None:
        if before is not None:
            self.counts[before.status] -= 1
        self.counts[after.status] += 1
        _keep(self.failed, after, after.status is TaskStatus.FAILED)
        _keep(self.retrying, after, after.status is TaskStatus.PENDING and after.retry_at is not None)

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    @property
    def done(self) -> int:
        return sum(number for status, number in self.counts.items() if status.is_final)

    @property
    def active(self) -> int:
        return self.counts[TaskStatus.RUNNING] + self.counts[TaskStatus.DISPATCHED]

    @property
    def queued(self) -> int:
        return self.counts[TaskStatus.PENDING] - len(self.retrying)


def _keep(notable: dict[TaskKey, Task], task: Task, is_notable: bool) -> None:
    if is_notable:
        notable[task.key] = task
    else:
        notable.pop(task.key, None)

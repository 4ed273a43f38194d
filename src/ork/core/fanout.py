"""The instances of one fanned-out task: which wait for a slot, which have one, and how the task ends."""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heappop, heappush

from ork.core.bind import Gathered
from ork.model.ids import TaskKey
from ork.model.record import Record, made
from ork.model.task import Failure, Output, Task, TaskStatus


class Group(Record, frozen=False):
    """`concurrency` limits the instances that are ready or active; the others are queued in index order."""

    total: int
    concurrency: int | None
    unfinished: int = 0
    queue: list[int] = made(default_factory=list)
    busy: set[int] = made(default_factory=set)
    failed: Task | None = None
    cancelled: Task | None = None

    def enqueue(self, index: int) -> None:
        heappush(self.queue, index)

    def take_slots(self) -> list[int]:
        """Give free slots to queued instances and return their indexes."""
        chosen = []
        while self.queue and (self.concurrency is None or len(self.busy) < self.concurrency):
            index = heappop(self.queue)
            self.busy.add(index)
            chosen.append(index)
        return chosen

    def note_end(self, instance: Task) -> None:
        self.unfinished -= 1
        if instance.status is TaskStatus.FAILED and self.failed is None:
            self.failed = instance
        elif instance.status in (TaskStatus.CANCELLED, TaskStatus.SKIPPED) and self.cancelled is None:
            self.cancelled = instance


def output_of(tasks: Mapping[TaskKey, Task], name: str) -> Output | Gathered | None:
    """The output of the task; for a fanned-out task, the outputs of its instances."""
    task = tasks[TaskKey(name)]
    if not task.instances:
        return task.output
    instances = (tasks[TaskKey(name, index)] for index in range(task.instances))
    return Gathered(tuple(instance.output for instance in instances), int(task.item) if task.item else None)


def group_failure(instance: Task) -> Failure:
    """The failure of a task with a failed instance. The message names the instance."""
    assert instance.failure is not None
    message = f"instance {instance.key.index} failed: {instance.failure.message}"
    return Failure(instance.failure.kind, message, instance.failure.detail)

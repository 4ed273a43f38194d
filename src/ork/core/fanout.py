"""The instances of one fanned-out task: which wait for a slot, which have one, and how the task ends."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from ork.core.bind import Gathered
from ork.core.launch_groups import RETRY_WINDOW_SECONDS
from ork.model.ids import TaskKey
from ork.model.record import Record, made
from ork.model.task import Failure, Output, Task, TaskStatus

if TYPE_CHECKING:
    from ork.core.graph import TaskNode


class Group(Record, frozen=False):
    """`concurrency` limits the instances that are ready or active; the others are queued in index order."""

    total: int
    concurrency: int | None
    unfinished: int = 0
    queue: list[int] = made(default_factory=list)
    busy: set[int] = made(default_factory=set)
    failed: Task | None = None
    cancelled: Task | None = None
    ready: set[int] = made(default_factory=set)  # where instances start as launch groups: those of the next one
    retries: set[datetime] = made(default_factory=set)  # when failed attempts of launch groups are started again

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

    def join_retries(self, at: datetime, *, is_last: bool) -> datetime:
        """When an attempt of a launch group is retried that could be from `at` on: together with others that are due
        within the window. `is_last`: no other attempt of its group is left that could join it."""
        latest = at + timedelta(seconds=RETRY_WINDOW_SECONDS)
        joined = min((each for each in self.retries if at <= each <= latest), default=at if is_last else latest)
        self.retries.add(joined)
        return joined

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


class InstancePosition(Record):
    """Index and count of an instance among its siblings, as passed to its worker."""

    index: int | None = None
    count: int | None = None


NO_POSITION = InstancePosition()


def position_of(tasks: Mapping[TaskKey, Task], key: TaskKey) -> InstancePosition:
    if key.index is None:
        return NO_POSITION
    whole = tasks[TaskKey(key.name)]
    if whole.instances is None:
        return NO_POSITION
    width = int(whole.item) if whole.item else whole.instances
    return InstancePosition(key.index % width, width)


def take_group(node: TaskNode, tasks: Mapping[TaskKey, Task]) -> list[TaskKey]:
    """The instances of the next launch group, in order. The others stay ready."""
    if node.group is None:
        return []
    keys = [TaskKey(node.spec.name, index) for index in sorted(node.group.ready)]
    keys = [key for key in keys if tasks[key].status is TaskStatus.PENDING]
    node.group.ready = {key.index for key in keys[node.group_size :] if key.index is not None}
    return keys[: node.group_size]


def concurrency_of(node: TaskNode) -> int | None:
    """How many instances may be ready or active at the same time. A launch group takes all of them: `concurrency` bounds
    its parallelism instead."""
    return None if node.group_size else node.spec.concurrency

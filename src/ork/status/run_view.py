"""An in-memory view of a run, updated with changed rows only. Instances of a fanned-out task are counted in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ork.errors import NotFoundError, UnreadableError
from ork.model.ids import RunId, TaskKey
from ork.model.run import Run
from ork.model.task import Task, TaskStatus
from ork.model.workflow import Command, CompiledWorkflow, TaskSpec, Version
from ork.objects.calls import in_thread
from ork.state.reading import StateReader
from ork.state.records import ALL_TASKS, RunUpdate, TaskFilter
from ork.status.secret_masking import hidden_params, mask_params, mask_secrets_of

if TYPE_CHECKING:
    from ork.model.masking import Mask


MANY_TASKS = 2000
"""Applying more takes longer than the event loop may be held."""


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


UNKNOWN_ACTION = Command(())


class RunView:
    """The run, its tasks in workflow order, and its tasks by status. An update costs time proportional to its changes.

    A task that has fanned out has its own row in `tasks`, but counts include only its instances.
    """

    def __init__(self, run: Run, version: Version, short: str, hidden: Mask | None = None) -> None:
        self.run = run
        self.version = version
        self.short = short
        self.hidden = hidden  # the values of sensitive params, masked in outputs
        self.mark: str | None = None
        self.tasks: dict[TaskKey, Task] = {}
        self.by_status: dict[TaskStatus, dict[TaskKey, Task]] = {status: {} for status in TaskStatus}
        self.retrying: dict[TaskKey, Task] = {}
        self.waiting: dict[TaskKey, Task] = {}  # tasks (not instances) that have not started
        self.instances: dict[str, Instances] = {}
        self.totals: dict[TaskStatus, int] | None = None  # of all tasks, if the view has only some of them
        mask_secrets_of(version.workflow)
        self.specs: dict[str, TaskSpec] = {spec.name: spec for spec in version.workflow.tasks}
        self.longest_name = max(map(len, self.specs), default=0)

    def apply(self, update: RunUpdate) -> list[Task]:
        """Applies the update and returns the tasks that changed, in the order they ended."""
        self.run, self.mark = update.run, update.mark
        tasks = mask_params(self.hidden, update).tasks
        changed = [task for task in tasks if self.tasks.get(task.key) != task]
        for task in changed:
            self._replace(self.tasks.get(task.key), task)
        return sorted(changed, key=_order_of_end)

    def _replace(self, before: Task | None, task: Task) -> None:
        key = task.key
        if before is not None:
            self.by_status[before.status].pop(key, None)
        self.tasks[key] = task
        if key.name not in self.specs:  # its version cannot be read
            self.specs[key.name] = TaskSpec(key.name, task.executor, UNKNOWN_ACTION)
        self.retrying.pop(key, None)
        self.waiting.pop(key, None)
        if key.index is not None:
            self.instances_of(key.name).replace(before, task)
        if is_group(task):
            return
        self.by_status[task.status][key] = task
        if task.status is TaskStatus.PENDING and task.retry_at is not None:
            self.retrying[key] = task
        elif task.status is TaskStatus.PENDING and key.index is None:
            self.waiting[key] = task

    def whole(self, name: str) -> Task | None:
        """The row of the task itself, not of an instance."""
        return self.tasks.get(TaskKey(name))

    def instances_of(self, name: str) -> Instances:
        return self.instances.setdefault(name, Instances())

    def count(self, status: TaskStatus) -> int:
        return len(self.by_status[status]) if self.totals is None else self.totals[status]

    @property
    def total(self) -> int:
        return sum(map(self.count, TaskStatus)) or len(self.specs)

    @property
    def done(self) -> int:
        return sum(self.count(status) for status in TaskStatus if status.is_final)

    def attempt_numbers(self, task: Task) -> tuple[int, int]:
        """The number of this attempt and the maximum number of attempts, both within the current round."""
        spec = self.specs.get(task.key.name)
        return task.attempt - task.earlier_attempts, 1 + (spec.retries if spec else 0)


def _order_of_end(task: Task) -> float:
    # Unfinished tasks come last; the sort is stable, so equal tasks keep the workflow's order.
    return task.finished_at.timestamp() if task.finished_at else _NEVER


_NEVER = float("inf")


async def version_of(store: StateReader, run: Run) -> Version:
    """The run's version, or one without tasks if it is missing or cannot be decoded, so that the run can be shown."""
    try:
        version = await store.get_version(run.version)
    except UnreadableError:
        version = None
    return version or Version(run.version, CompiledWorkflow(run.workflow, ()), "")


async def open_view(store: StateReader, run: RunId, only: TaskFilter = ALL_TASKS) -> tuple[RunView, list[Task]]:
    """The view of a run and its tasks, all of them or those that match `only`."""
    from ork.status.ids import short_id

    update = await (store.run_updates(run) if only is ALL_TASKS else store.run_updates(run, None, only))
    if update is None:
        raise NotFoundError(f"no run `{run}`", hint="`ork runs` lists them")
    version, hidden = await version_of(store, update.run), await hidden_params(store, update.run)
    view = RunView(update.run, version, await short_id(store, run), hidden)
    if len(update.tasks) < MANY_TASKS:
        return view, view.apply(update)
    return view, await in_thread(view.apply, update)


async def open_task(store: StateReader, run: RunId, key: TaskKey) -> tuple[RunView, Task | None]:
    """The view of a run with one task only, and the task; None if the run does not have it."""
    view, _ = await open_view(store, run, one_task(key))
    return view, view.tasks.get(key)


def one_task(key: TaskKey) -> TaskFilter:
    """Selects this task, or the one after it if the run does not have it."""
    before = None if key.index is None else TaskKey(key.name, key.index - 1 if key.index else None)
    return TaskFilter(key.name, after=before, limit=1)


async def refresh(store: StateReader, view: RunView) -> list[Task]:
    """Updates the view and returns the tasks that changed since the last update."""
    update = await store.run_updates(view.run.id, view.mark)
    if update is None:
        raise NotFoundError(f"run `{view.run.id}` is gone")
    return view.apply(update)

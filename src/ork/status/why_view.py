"""Reads the tasks that an answer to `why` mentions. Of all other tasks it reads how many are in each status: a run may have a
hundred thousand."""

from __future__ import annotations

from ork.model.ids import RunId, TaskKey
from ork.model.run import Run
from ork.model.task import TaskStatus
from ork.objects.calls import in_thread
from ork.state.reading import StateReader
from ork.state.records import TaskCount, TaskFilter
from ork.status.ids import RunTarget
from ork.status.run_view import MANY_TASKS, RunView, is_group, one_task, open_view, version_of
from ork.status.summary import total_counts
from ork.status.why import EXPLAINED_STATUSES, MAX_TASKS

MOST_LOOKUPS = 20
"""So many tasks are read one by one; of more, all that have not ended are read at once."""
_NOT_ENDED = frozenset(status for status in TaskStatus if not status.is_final)
_PENDING = frozenset({TaskStatus.PENDING})


async def why_view(store: StateReader, run: RunId, target: RunTarget) -> RunView:
    """The view of a run with the tasks that an answer about the target mentions."""
    known = await store.get_run(run)
    if known is None or not (await version_of(store, known)).workflow.tasks:
        return (await open_view(store, run))[0]  # without its workflow, tasks cannot be looked up
    return await _of_run(store, known) if target.task is None else await _of_task(store, run, target)


async def _of_run(store: StateReader, run: Run) -> RunView:
    """The tasks that have not ended or have failed, without instances."""
    only = TaskFilter(statuses=frozenset(EXPLAINED_STATUSES), with_instances=False)
    view, _ = await open_view(store, run.id, only)
    if run.status.is_final:
        return view
    counts = await store.count_tasks(run.id)
    view.totals = total_counts(counts)
    await _add(store, view, TaskFilter(statuses=_PENDING, is_retrying=True))
    for each in counts:  # the first dispatched instance says whether they start as a group
        if each.is_instance and each.status is TaskStatus.DISPATCHED:
            await _add_instances(store, view, each.name, each.status, 1)
    _count_instances(view, counts)
    return view


async def _of_task(store: StateReader, run: RunId, target: RunTarget) -> RunView:
    """The task, and what its reason may name: upstream tasks, the root cause, some of its instances."""
    key = TaskKey(target.task or "", target.instance)
    view, _ = await open_view(store, run, one_task(key))
    task = view.tasks.get(key)
    if task is None:
        await _add(store, view, TaskFilter(limit=1))  # whether the run has started
        return view
    if task.status is TaskStatus.PENDING and key.index is None:
        await _add_upstream(store, view, key.name)
    is_open = key.index is not None and not task.status.is_final
    if is_open or any(map(is_group, view.tasks.values())):
        counts = await store.count_tasks(run)
        if is_group(task):
            for each in counts:
                if each.name == key.name and each.is_instance and each.status in EXPLAINED_STATUSES:
                    await _add_instances(store, view, key.name, each.status, MAX_TASKS + 1)
        _count_instances(view, counts)
    if task.cause is not None:
        await _add(store, view, one_task(task.cause))
    return view


async def _add_upstream(store: StateReader, view: RunView, name: str) -> None:
    names = view.specs[name].depends_on
    if len(names) > MOST_LOOKUPS:
        await _add(store, view, TaskFilter(statuses=_NOT_ENDED, with_instances=False))
        return
    for each in names:
        await _add(store, view, one_task(TaskKey(each)))


async def _add_instances(store: StateReader, view: RunView, name: str, status: TaskStatus, limit: int) -> None:
    """Some instances with this status; of those that are pending, all that wait for a retry."""
    only = TaskFilter(name, frozenset({status}), TaskKey(name), limit)
    if status is TaskStatus.PENDING:
        only = TaskFilter(name, _PENDING, TaskKey(name), is_retrying=True)
    await _add(store, view, only)


async def _add(store: StateReader, view: RunView, only: TaskFilter) -> None:
    update = await store.run_updates(view.run.id, None, only)
    if update is None:
        return
    if len(update.tasks) < MANY_TASKS:
        view.apply(update)
    else:
        await in_thread(view.apply, update)


def _count_instances(view: RunView, counts: tuple[TaskCount, ...]) -> None:
    """Counts all instances, of which the view has only some."""
    numbers: dict[str, dict[TaskStatus, int]] = {}
    for each in counts:
        if each.is_instance:
            numbers.setdefault(each.name, dict.fromkeys(TaskStatus, 0))[each.status] += each.number
    for name, found in numbers.items():
        view.instances_of(name).counts = found

"""Runs, tasks and attempts, page by page, in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ork.core.limits import limit_names
from ork.model.ids import AttemptKey, TaskKey
from ork.model.record import replaced
from ork.model.run import Run
from ork.model.task import Attempt, Task
from ork.state.admission import room_left
from ork.state.paging import attempt_place, not_ours, task_place
from ork.state.records import LimitUse, RunFilter, RunPage, TaskFilter

if TYPE_CHECKING:
    from ork.state.memory.rows import RunRow, Shared

_HOLDERS_SHOWN = 5


def runs_page(state: Shared, query: RunFilter) -> RunPage:
    runs = [row.run for row in state.runs.values()]
    places = sorted(((run.created_at.isoformat(), run.id) for run in runs if _matches(run, query)), reverse=True)
    if query.cursor is not None:
        before = tuple(query.cursor.split(" "))
        if len(before) != 2:
            raise not_ours()
        places = [place for place in places if place < before]
    limit = max(query.limit, 1)
    shown = tuple(listed(state.runs[id].run) for _, id in places[:limit])
    return RunPage(shown, " ".join(places[limit - 1]) if len(places) > limit else None)


def listed(run: Run) -> Run:
    """The run as in lists: without its params."""
    return replaced(run, params={})


def tasks_page(state: Shared, row: RunRow, since: int, only: TaskFilter) -> tuple[Task, ...]:
    first = task_place(_order(state, row), only.after)
    wanted = [
        task
        for task in state.tasks_in_order(row, since)
        if state.place(row, task.key) > first
        and only.name in (None, task.key.name)
        and (not only.statuses or task.status in only.statuses)
        and (only.with_instances or task.key.index is None)
        and (not only.is_retrying or task.retry_at is not None)
    ]
    return tuple(wanted[: only.limit])


def attempts_page(
    state: Shared, row: RunRow, task: TaskKey | None, after: AttemptKey | None, limit: int | None
) -> tuple[Attempt, ...]:
    first = attempt_place(_order(state, row), after)
    places = {key: (*state.place(row, key[0]), key[1]) for key in row.attempts if task is None or key[0] == task}
    later = sorted((place, key) for key, place in places.items() if place > first)
    return tuple(row.attempts[key] for _, key in later[:limit])


def _order(state: Shared, row: RunRow) -> dict[str, int]:
    specs = state.versions[row.run.version].workflow.tasks
    return {spec.name: place for place, spec in enumerate(specs)}


def _matches(run: Run, query: RunFilter) -> bool:
    right_workflow = query.workflow is None or run.workflow == query.workflow
    is_early = query.created_before is not None and run.created_at >= query.created_before
    is_late = query.created_after is not None and run.created_at < query.created_after
    return right_workflow and not is_early and not is_late and (not query.statuses or run.status in query.statuses)


def limits_in_use(state: Shared) -> tuple[LimitUse, ...]:
    room = room_left(state.limits, state.active())
    holders = {
        name: tuple(a.key for a in state.active_attempts() if name in limit_names(a.executor, a.pool))[:_HOLDERS_SHOWN]
        for name in state.limits
    }
    return tuple(
        LimitUse(name, slots, slots - room[name], holders[name]) for name, slots in sorted(state.limits.items())
    )

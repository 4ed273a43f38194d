"""Tasks and attempts of a run, page by page, in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ork.model.ids import AttemptKey, TaskKey
from ork.model.task import Attempt, Task
from ork.state.paging import attempt_place, task_place
from ork.state.store import TaskFilter

if TYPE_CHECKING:
    from ork.state.memory.rows import RunRow, Shared


def tasks_page(state: Shared, row: RunRow, since: int, only: TaskFilter) -> tuple[Task, ...]:
    first = task_place(_order(state, row), only.after)
    wanted = [
        task
        for task in state.tasks_in_order(row, since)
        if state.place(row, task.key) > first
        and only.name in (None, task.key.name)
        and (not only.statuses or task.status in only.statuses)
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

"""Finds damaged rows of runs by reading all rows of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ork.errors import RefusedError, UnreadableError
from ork.model.ids import RunId
from ork.model.quarantine import SET_ASIDE
from ork.model.run import CommandKind, Run, RunCommand, RunStatus
from ork.model.task import Task, TaskStatus
from ork.state.lenient import UNREADABLE_ROW
from ork.state.quarantine import missing_version
from ork.state.records import RunFilter

if TYPE_CHECKING:
    from ork.state.store import StateStore

MAX_RUNS_CHECKED = 100
_ACTIVE = (TaskStatus.DISPATCHED, TaskStatus.RUNNING)
_CONTINUING_COMMANDS = (CommandKind.RESUME, CommandKind.RETRY)


async def damage_of(store: StateStore, run: Run) -> str | None:
    """The first damage of the run that is found, or None."""
    return run.unreadable or await _damaged_version(store, run) or await _damaged_below(store, run)


async def damaged_runs(store: StateStore) -> dict[RunId, str]:
    """Damage of the newest runs and the newest unfinished runs, including runs that no scheduler has read yet."""
    unfinished = frozenset(status for status in RunStatus if not status.is_final)
    found: dict[RunId, str] = {}
    for statuses in (frozenset(), unfinished):
        page = await store.list_runs(RunFilter(statuses=statuses, limit=MAX_RUNS_CHECKED))
        for listed in page.runs:
            if listed.id in found or (listed.status.is_final and listed.unreadable is None):
                continue
            run = await store.get_run(listed.id)  # lists omit params
            damage = await damage_of(store, run) if run is not None else None
            if damage is not None:
                found[listed.id] = damage
    return found


async def check_readable(store: StateStore, command: RunCommand, run: Run | None, short: str) -> None:
    """RefusedError for continuing a quarantined run that is still damaged: it would only be quarantined again."""
    if run is None or command.kind not in _CONTINUING_COMMANDS or not (run.note or "").startswith(SET_ASIDE):
        return
    damage = await damage_of(store, run)
    if damage is not None:
        message = f"cannot {command.kind} run {short}: it is still unreadable: {damage}"
        raise RefusedError(message, hint=f"repair it first (docs/store.md, Damaged rows), or `ork cancel {short}`")


async def _damaged_version(store: StateStore, run: Run) -> str | None:
    try:
        return None if await store.get_version(run.version) is not None else missing_version(run.version)
    except UnreadableError as error:
        return error.message


async def _damaged_below(store: StateStore, run: Run) -> str | None:
    """Damage of the run's tasks, and of attempts of active tasks."""
    update = await store.run_updates(run.id)
    for task in update.tasks if update is not None else ():
        if (task.reason or "").startswith(UNREADABLE_ROW):
            return f"task {task.key}: {(task.reason or '').removeprefix(UNREADABLE_ROW)}"
        damage = await _damaged_attempt(store, run, task) if task.status in _ACTIVE else None
        if damage is not None:
            return damage
    return None


async def _damaged_attempt(store: StateStore, run: Run, task: Task) -> str | None:
    for attempt in await store.list_attempts(run.id, task.key):
        message = attempt.failure.message if attempt.failure is not None else ""
        if attempt.key.number == task.attempt and message.startswith(UNREADABLE_ROW):
            return f"attempt {attempt.key}: {message.removeprefix(UNREADABLE_ROW)}"
    return None

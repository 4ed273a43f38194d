"""Rows of tasks and attempts: partial updates where only progress is to be written, whole rows otherwise.

Where a partial update does not fit what the store holds, all rows are written whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from ork.core.effects import LaunchRequest
from ork.model.ids import RunId
from ork.model.task import Attempt, AttemptStatus, InlineOutput, Task, TaskStatus
from ork.state.partial_updates import is_new, is_plain_attempt, is_plain_progress
from ork.state.sqlite.connection import NULL, Connection, Row
from ork.state.sqlite.rows import NO_INDEX, attempt_row, task_row, time_text

Order: TypeAlias = Mapping[str, int]
"""Each task's place in its workflow."""


class RunRows(NamedTuple):
    """What changed about the tasks and attempts of one run."""

    run: RunId
    order: Order
    tasks: Sequence[Task]
    attempts: Sequence[Attempt]


def write_tasks(connection: Connection, changes: Sequence[RunRows], changed: int) -> None:
    added: list[Row] = []
    started: list[Row] = []
    succeeded: list[Row] = []
    whole: list[Row] = []
    for run, order, tasks, _ in changes:
        for task in tasks:
            name, index = task.key
            ordinal, idx = order[name], NO_INDEX if index is None else index
            if is_new(task):
                item = NULL if task.item is None else task.item
                added.append((run, ordinal, idx, name, task.executor, item, changed))
                continue
            if not is_plain_progress(task):
                whole.append(task_row(run, ordinal, changed, task))
                continue
            began = time_text(task.started_at)
            if task.status is TaskStatus.RUNNING:
                started.append((began, changed, run, ordinal, idx, task.attempt))
            else:
                ended, output = time_text(task.finished_at), task.output
                text = output.json if isinstance(output, InlineOutput) else NULL
                succeeded.append((began, ended, task.exit_code, text, changed, run, ordinal, idx, task.attempt))
    if not _fit(connection, ("add_task", added), ("start_task", started), ("finish_task", succeeded)):
        whole = [task_row(run, order[t.key.name], changed, t) for run, order, tasks, _ in changes for t in tasks]
    connection.run_many("write_task", whole)


def write_attempts(connection: Connection, changes: Sequence[RunRows]) -> None:
    started: list[Row] = []
    succeeded: list[Row] = []
    whole: list[Row] = []
    for _, order, _, attempts in changes:
        for attempt in attempts:
            run, (name, index), number = attempt.key
            if not is_plain_attempt(attempt):
                whole.append(attempt_row(order[name], attempt))
                continue
            ordinal, idx = order[name], NO_INDEX if index is None else index
            began, seq = time_text(attempt.started_at), attempt.seq
            seen = NULL if attempt.seen_at is None else time_text(attempt.seen_at)
            pool = NULL if attempt.pool is None else attempt.pool
            if attempt.status is AttemptStatus.RUNNING:
                started.append((began, seen, pool, seq, run, ordinal, idx, number))
            else:
                ended, code = time_text(attempt.finished_at), attempt.exit_code
                succeeded.append((began, seen, pool, seq, ended, code, run, ordinal, idx, number))
    if not _fit(connection, ("start_attempt", started), ("finish_attempt", succeeded)):
        whole = [attempt_row(order[a.key.task.name], a) for _, order, _, attempts in changes for a in attempts]
    connection.run_many("write_attempt", whole)


def write_launches(
    connection: Connection, launches: Sequence[LaunchRequest], orders: Mapping[RunId, Order], changed: int
) -> None:
    tasks: list[Row] = []
    attempts: list[Row] = []
    for request in launches:
        task, attempt = request.task, request.attempt
        run, (name, index), number = attempt.key
        ordinal, idx = orders[run][name], NO_INDEX if index is None else index
        tasks.append((task.attempt, time_text(task.dispatched_at), changed, run, ordinal, idx))
        pool, at = NULL if attempt.pool is None else attempt.pool, time_text(attempt.dispatched_at)
        about = attempt.executor, pool, attempt.external_name, attempt.token_hash, at
        attempts.append((run, ordinal, idx, number, name, *about))
    if connection.run_many("launch_task", tasks) != len(tasks):
        rows = [(request.attempt.key.run, request.task) for request in launches]
        connection.run_many("write_task", [task_row(run, orders[run][t.key.name], changed, t) for run, t in rows])
    connection.run_many("launch_attempt", attempts)


def _fit(connection: Connection, *statements: tuple[str, list[Row]]) -> bool:
    """Runs them until one does not write every one of its rows: then all are to be written whole."""
    return all(connection.run_many(name, rows) == len(rows) for name, rows in statements if rows)

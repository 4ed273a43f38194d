"""Rows of tasks and attempts: those that go the usual way cost what changes about them, all others are written whole.

A row that is not where the way leads from is written whole after all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from ork.model.ids import RunId
from ork.model.task import Attempt, InlineOutput, Task
from ork.state.sqlite.connection import Connection, Row
from ork.state.sqlite.rows import NO_INDEX, attempt_row, task_row, time_text
from ork.state.usual_way import goes_well, is_on_its_way

PlacedTask: TypeAlias = tuple[RunId, int, Task]
PlacedAttempt: TypeAlias = tuple[int, Attempt]
"""With the task's place in its workflow."""


def write_tasks(connection: Connection, tasks: Sequence[PlacedTask], changed: int) -> None:
    moved: list[PlacedTask] = []
    whole: list[PlacedTask] = []
    for placed in tasks:
        (moved if is_on_its_way(placed[2]) else whole).append(placed)
    if connection.run_many("move_task", [_moved_task(*placed, changed) for placed in moved]) != len(moved):
        whole += moved
    connection.run_many("write_task", [task_row(run, ordinal, changed, task) for run, ordinal, task in whole])


def write_attempts(connection: Connection, attempts: Sequence[PlacedAttempt]) -> None:
    moved: list[PlacedAttempt] = []
    whole: list[PlacedAttempt] = []
    for placed in attempts:
        (moved if goes_well(placed[1]) else whole).append(placed)
    if connection.run_many("move_attempt", [_moved_attempt(*placed) for placed in moved]) != len(moved):
        whole += moved
    connection.run_many("write_attempt", [attempt_row(*placed) for placed in whole])


def launch_tasks(connection: Connection, tasks: Sequence[PlacedTask], changed: int) -> None:
    if connection.run_many("launch_task", [_launched_task(*placed, changed) for placed in tasks]) != len(tasks):
        connection.run_many("write_task", [task_row(run, ordinal, changed, task) for run, ordinal, task in tasks])


def launch_attempts(connection: Connection, attempts: Sequence[PlacedAttempt]) -> None:
    connection.run_many("launch_attempt", [_launched_attempt(*placed) for placed in attempts])


def _launched_task(run: RunId, ordinal: int, task: Task, changed: int) -> Row:
    index = task.key.index
    return task.attempt, time_text(task.dispatched_at), changed, run, ordinal, NO_INDEX if index is None else index


def _moved_task(run: RunId, ordinal: int, task: Task, changed: int) -> Row:
    index, output = task.key.index, task.output
    return (
        task.status._value_, task.exit_code, time_text(task.started_at), time_text(task.finished_at),
        output.json if isinstance(output, InlineOutput) else None, changed,
        run, ordinal, NO_INDEX if index is None else index, task.attempt,
    )  # fmt: skip


def _launched_attempt(ordinal: int, attempt: Attempt) -> Row:
    run, (name, index), number = attempt.key
    return (
        run, ordinal, NO_INDEX if index is None else index, number, name, attempt.executor, attempt.pool,
        attempt.external_name, attempt.token_hash, time_text(attempt.dispatched_at),
    )  # fmt: skip


def _moved_attempt(ordinal: int, attempt: Attempt) -> Row:
    run, (_, index), number = attempt.key
    return (
        attempt.status._value_, attempt.pool, time_text(attempt.started_at), time_text(attempt.finished_at),
        attempt.exit_code, attempt.seq, time_text(attempt.seen_at),
        run, ordinal, NO_INDEX if index is None else index, number,
    )  # fmt: skip

"""Builds the next row of a task or attempt, one function for each change."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ork.core.events import Failed, Started, Succeeded
from ork.core.retry import attempt_status
from ork.core.transitions import TaskStep, next_task_status
from ork.model.ids import AttemptKey, TaskKey
from ork.model.record import replaced
from ork.model.task import Attempt, AttemptStatus, Failure, FailureKind, GiveUp, Output, Task
from ork.model.workflow import TaskSpec


def dispatched(
    task: Task, spec: TaskSpec, key: AttemptKey, name: str, token_hash: str, now: datetime
) -> tuple[Task, Attempt]:
    row = Task.replaced(
        task,
        status=next_task_status(task.key, task.status, TaskStep.LAUNCH),
        attempt=key.number,
        dispatched_at=now,
        started_at=None,
        finished_at=None,
        exit_code=None,
        retry_at=None,
    )
    return row, Attempt(key, AttemptStatus.DISPATCHED, spec.executor, name, token_hash, now, spec.pool)


def started(task: Task, attempt: Attempt, event: Started, now: datetime) -> tuple[Task, Attempt]:
    at = _clamp(attempt.dispatched_at, event.at, now)
    return (
        Task.replaced(task, status=next_task_status(task.key, task.status, TaskStep.START), started_at=at),
        Attempt.replaced(attempt, status=AttemptStatus.RUNNING, started_at=at, seq=event.seq, seen_at=now),
    )


def succeeded(task: Task, attempt: Attempt, event: Succeeded, now: datetime) -> tuple[Task, Attempt]:
    began = _clamp(attempt.dispatched_at, attempt.started_at or event.started_at, now)
    ended = _clamp(began, event.finished_at, now)
    return (
        Task.replaced(
            task,
            status=next_task_status(task.key, task.status, TaskStep.SUCCEED),
            started_at=began,
            finished_at=ended,
            exit_code=event.exit_code,
            output=event.output,
            failure=None,
            reason=None,
        ),
        Attempt.replaced(
            attempt,
            status=AttemptStatus.SUCCESS,
            seq=event.seq,
            started_at=began,
            finished_at=ended,
            exit_code=event.exit_code,
            failure=None,
        ),
    )


def failed(attempt: Attempt, event: Failed, now: datetime) -> Attempt:
    """An attempt that reported its failure. If it was being cancelled or timed out, that failure is kept instead."""
    began = attempt.started_at or event.started_at
    began = None if began is None else _clamp(attempt.dispatched_at, began, now)
    imposed = attempt.failure if is_cancelled(attempt) or attempt.closing is GiveUp.TIMEOUT else None
    ended = _clamp(began or attempt.dispatched_at, event.finished_at, now)
    attempt = replaced(attempt, seq=event.seq, started_at=began, exit_code=event.exit_code)
    return unsuccessful(attempt, imposed or event.failure, ended)


def is_cancelled(attempt: Attempt) -> bool:
    """True if the attempt was cancelled, or will be once it is over."""
    return attempt.failure is not None and attempt.failure.kind is FailureKind.CANCELLED


def cancel_reason(attempt: Attempt) -> GiveUp:
    """A cancelled attempt that was declared dead stays declared dead."""
    return GiveUp.DECLARED_DEAD if attempt.closing is GiveUp.DECLARED_DEAD else GiveUp.CANCEL


def unsuccessful(attempt: Attempt, failure: Failure, at: datetime) -> Attempt:
    return replaced(attempt, status=attempt_status(failure), failure=failure, finished_at=at)


def after_failure(task: Task, attempt: Attempt, step: TaskStep) -> Task:
    """A task after an attempt without success; `step` decides its next status."""
    return replaced(
        task,
        status=next_task_status(task.key, task.status, step),
        started_at=attempt.started_at,
        finished_at=attempt.finished_at,
        exit_code=attempt.exit_code,
        failure=attempt.failure,
        reason=None,
    )


def not_run(task: Task, step: TaskStep, reason: str, cause: TaskKey | None, now: datetime) -> Task:
    """A task that ended without running: skipped or cancelled."""
    status = next_task_status(task.key, task.status, step)
    return replaced(task, status=status, reason=reason, cause=cause, finished_at=now, retry_at=None)


def begun(task: Task, now: datetime, **fields: Any) -> Task:
    """A task that runs without an attempt of its own."""
    status = next_task_status(task.key, task.status, TaskStep.BEGIN)
    return replaced(task, status=status, started_at=now, dispatched_at=now, finished_at=None, **fields)


def ended(task: Task, step: TaskStep, now: datetime, **fields: Any) -> Task:
    """The end of a task that has no attempt of its own."""
    status = next_task_status(task.key, task.status, step)
    return replaced(task, status=status, started_at=task.started_at or now, finished_at=now, **fields)


def from_cache(task: Task, reason: str, output: Output | None, now: datetime) -> Task:
    """A task that took an earlier result; the outcome of its own attempts is cleared. It gets no cache key, so that
    later tasks take the result from the run that produced it."""
    nothing = {"failure": None, "exit_code": None, "retry_at": None, "cache_key": None}
    return ended(task, TaskStep.SUCCEED, now, reason=reason, output=output, **nothing)


def _clamp(low: datetime, time: datetime, high: datetime) -> datetime:
    """Clamp a time reported by a worker, whose clock may be wrong, so that displayed times are in order."""
    if time > high:
        time = high
    return low if time < low else time

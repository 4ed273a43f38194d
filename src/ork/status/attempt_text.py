"""Describes the attempts of a task: how earlier ones ended, and why there is no further one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from ork.core.retry import RETRY_REASON
from ork.model.task import Attempt, AttemptStatus, Failure, FailureKind, Task, TaskStatus
from ork.model.workflow import OnUnreachable, TaskSpec
from ork.status.formatting import duration

MAX_GROUPS = 4
# A task that takes longer than this to stop gets a note.
QUICK_STOP_SECONDS = 1.0


def earlier_attempts_text(task: Task, attempts: Sequence[Attempt]) -> str | None:
    """`2 attempts: exit code 1, then success`; None if no earlier attempt failed."""
    earlier = [each for each in attempts if each.key.number < task.attempt and each.status != AttemptStatus.SUCCESS]
    if not earlier:
        return None
    if len(earlier) == 1 and earlier[0].status is AttemptStatus.LOST:
        return f"attempt {earlier[0].key.number} lost: {first_line(earlier[0].failure)}"
    ends = [(end, len(list(same))) for end, same in groupby(_end(each) for each in earlier)]
    parts = [end if times == 1 else f"{end} ({times} times)" for end, times in ends[:MAX_GROUPS]]
    if len(ends) > MAX_GROUPS:
        parts.append("…")
    last = first_line(task.failure) if task.status is TaskStatus.FAILED else task.status.value
    if {end for end, _ in ends} == {last}:
        return f"{task.attempt} attempts, all with the same end"
    return f"{task.attempt} attempts: {', '.join(parts)}, then {last}"


def _end(attempt: Attempt) -> str:
    reason = first_line(attempt.failure)
    return f"lost ({reason})" if attempt.status is AttemptStatus.LOST else reason


def first_line(failure: Failure | None) -> str:
    return failure.message.strip().partition("\n")[0] if failure else "failed"


def failure_notes(spec: TaskSpec | None, task: Task) -> str | None:
    """For a failed task, why its remaining retries were not used, and, after a timeout, how long stopping it took."""
    if spec is None or task.failure is None or task.status is not TaskStatus.FAILED:
        return None
    notes = [note for note in (_why_not_retried(spec, task), _slow_stop(spec, task)) if note]
    return "; ".join(notes) or None


def _why_not_retried(spec: TaskSpec, task: Task) -> str | None:
    assert task.failure is not None
    if task.attempt == 0 or task.attempt - task.earlier_attempts > spec.retries:
        return None
    if "unreachable" in (task.failure.detail or {}) and spec.on_unreachable is OnUnreachable.FAIL:
        return "not retried: `on_unreachable` is fail"
    if (task.failure.detail or {}).get("retry") is False:
        return "not retried: the task asked not to be retried"
    reason = RETRY_REASON.get(task.failure.kind)
    if reason is None or reason in spec.retry_on:
        return None
    return f"not retried: `retry_on` has no {reason.value}"


def _slow_stop(spec: TaskSpec, task: Task) -> str | None:
    assert task.failure is not None
    ended = task.finished_at
    if task.failure.kind is not FailureKind.TIMEOUT or spec.timeout is None or ended is None or not task.started_at:
        return None
    seconds = (ended - task.started_at).total_seconds() - spec.timeout
    if seconds < QUICK_STOP_SECONDS:
        return None
    return f"stopping it took {duration(seconds)} of grace time, because it ignored SIGTERM"

"""Whether a failed attempt is retried, and when."""

from __future__ import annotations

from datetime import timedelta
from zlib import crc32

from ork.model.record import replaced
from ork.model.task import AttemptStatus, Failure, FailureKind
from ork.model.workflow import OnUnreachable, RetryOn, TaskSpec

BACKOFF_LIMIT_SECONDS = 60.0
JITTER = 0.25

RETRY_REASON: dict[FailureKind, RetryOn] = {
    FailureKind.EXIT: RetryOn.EXIT,
    FailureKind.EXCEPTION: RetryOn.EXIT,
    FailureKind.OUTPUT: RetryOn.EXIT,
    FailureKind.START: RetryOn.EXIT,
    FailureKind.LOST: RetryOn.LOST,
    FailureKind.TIMEOUT: RetryOn.TIMEOUT,
}

_ENDS: dict[FailureKind, AttemptStatus] = {
    FailureKind.LOST: AttemptStatus.LOST,
    FailureKind.TIMEOUT: AttemptStatus.TIMED_OUT,
    FailureKind.CANCELLED: AttemptStatus.CANCELLED,
}


def attempt_status(failure: Failure) -> AttemptStatus:
    return _ENDS.get(failure.kind, AttemptStatus.FAILED)


def should_retry(spec: TaskSpec, failure: Failure, tries: int) -> bool:
    """`tries` counts the attempts of this round, including the failed one."""
    if tries > spec.retries or (failure.detail or {}).get("retry") is False:
        return False
    return RETRY_REASON.get(failure.kind) in spec.retry_on


def retry_delay(spec: TaskSpec, failure: Failure, tries: int, unit: str) -> timedelta:
    """The configured delay, or 1, 2, 4 … 60 s with jitter. A lost worker is not the task's fault: no delay.

    `unit` names what was started: the attempt, or its launch group, whose attempts have one delay and so come back together."""
    if spec.retry_delay is not None:
        return timedelta(seconds=spec.retry_delay)
    if failure.kind is FailureKind.LOST:
        return timedelta(0)
    seconds = min(BACKOFF_LIMIT_SECONDS, 2.0 ** min(tries - 1, 10))
    return timedelta(seconds=seconds * _jitter(unit))


def unreachable(spec: TaskSpec, failure: Failure, why: str) -> Failure:
    """The failure of an attempt that counts as over although its end could not be observed. A cancellation stays one."""
    detail = {**(failure.detail or {}), "unreachable": why}
    if failure.kind is FailureKind.CANCELLED:
        return replaced(failure, detail=detail)
    if spec.on_unreachable is OnUnreachable.FAIL:
        detail["retry"] = False
    return Failure(failure.kind, f"{failure.message}; {why}", detail)


def _jitter(unit: str) -> float:
    """A factor from 1 - JITTER to 1 + JITTER. Derived from a name, so that a rebuilt machine decides the same."""
    return 1 - JITTER + 2 * JITTER * (crc32(unit.encode()) / 0xFFFFFFFF)

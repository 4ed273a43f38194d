"""Decides whether a silent attempt is given up. All times are seconds of one monotonic clock."""

from __future__ import annotations

from ork.model.record import Record
from ork.model.task import Failure, FailureKind, GiveUp


class LivenessTimeouts(Record):
    stale_seconds: float = 60.0
    start_limit_seconds: float = 300.0
    # The worker ends its own task at the timeout; the scheduler acts only if it did not.
    timeout_margin_seconds: float = 15.0


def overdue_at(
    timeouts: LivenessTimeouts,
    *,
    running_since: float | None,
    watched_since: float,
    last_seen: float,
    timeout: float | None,
) -> float:
    """When `check_liveness` would give the attempt up if no further status arrives."""
    if running_since is None:
        return watched_since + timeouts.start_limit_seconds
    deadlines = [last_seen + timeouts.stale_seconds]
    if timeout is not None:
        deadlines.append(running_since + timeout + timeouts.timeout_margin_seconds)
    return min(deadlines)


def check_liveness(
    timeouts: LivenessTimeouts,
    now: float,
    *,
    running_since: float | None,
    watched_since: float,
    last_seen: float,
    timeout: float | None,
) -> tuple[GiveUp, Failure] | None:
    if running_since is None:
        if now - watched_since < timeouts.start_limit_seconds:
            return None
        return GiveUp.NOT_STARTED, Failure(FailureKind.LOST, f"not started within {timeouts.start_limit_seconds:g} s")
    if timeout is not None and now - running_since >= timeout + timeouts.timeout_margin_seconds:
        return GiveUp.TIMEOUT, timed_out(timeout)
    if now - last_seen >= timeouts.stale_seconds:
        return GiveUp.STALE, Failure(FailureKind.LOST, f"its worker was silent for {timeouts.stale_seconds:g} s")
    return None


def timed_out(timeout: float) -> Failure:
    return Failure(FailureKind.TIMEOUT, f"timed out after {timeout:g} s")

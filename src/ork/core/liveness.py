"""Whether an attempt that says nothing is to be given up. All times are seconds of one monotonic clock."""

from __future__ import annotations

from ork.model.record import Record
from ork.model.task import Failure, FailureKind, GiveUp


class Patience(Record):
    stale_seconds: float = 60.0
    start_limit_seconds: float = 300.0
    # The worker ends its own task at the timeout; we step in only when it plainly did not.
    timeout_margin_seconds: float = 15.0


def overdue_at(
    patience: Patience, *, running_since: float | None, watched_since: float, last_seen: float, timeout: float | None
) -> float:
    """The moment at which `verdict` would give the attempt up if nothing is heard until then."""
    if running_since is None:
        return watched_since + patience.start_limit_seconds
    moments = [last_seen + patience.stale_seconds]
    if timeout is not None:
        moments.append(running_since + timeout + patience.timeout_margin_seconds)
    return min(moments)


def verdict(
    patience: Patience,
    now: float,
    *,
    running_since: float | None,
    watched_since: float,
    last_seen: float,
    timeout: float | None,
) -> tuple[GiveUp, Failure] | None:
    if running_since is None:
        if now - watched_since < patience.start_limit_seconds:
            return None
        return GiveUp.NOT_STARTED, Failure(FailureKind.LOST, f"not started within {patience.start_limit_seconds:g} s")
    if timeout is not None and now - running_since >= timeout + patience.timeout_margin_seconds:
        return GiveUp.TIMEOUT, timed_out(timeout)
    if now - last_seen >= patience.stale_seconds:
        return GiveUp.STALE, Failure(FailureKind.LOST, f"its worker was silent for {patience.stale_seconds:g} s")
    return None


def timed_out(timeout: float) -> Failure:
    return Failure(FailureKind.TIMEOUT, f"timed out after {timeout:g} s")

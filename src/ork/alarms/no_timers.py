"""No timer service: ticks are called by people, cron or a schedule of the platform."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from ork.alarms.timers import Timer


class NoTimers:
    """Accepts every timer and calls none."""

    describes = "no alarm"
    longest = timedelta(days=365)

    def create(self, name: str, at: datetime) -> bool:  # noqa: ARG002
        return True

    def delete(self, name: str) -> None:
        pass

    def pending(self) -> Sequence[Timer]:
        return ()

    def check(self) -> None:
        pass

    def prepare(self) -> None:
        pass

    def close(self) -> None:
        pass

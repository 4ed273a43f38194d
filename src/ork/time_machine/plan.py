"""What to play: a range of time, and what is assumed about tasks."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

from ork.errors import UsageError
from ork.model.record import Record, made

LONGEST = timedelta(days=366)
DEFAULT_SECONDS = 60.0


class SimulationPlan(Record):
    """`durations` are by task (`TASK` or `WORKFLOW.TASK`), `default_seconds` are for tasks without history.

    Without a `seed` every attempt takes the median of its task and succeeds. With one, attempts are drawn from the history:
    their durations and failures. `fail_rate` replaces the failures of the history.
    """

    start: datetime
    end: datetime
    seed: int | None = None
    default_seconds: float = DEFAULT_SECONDS
    durations: Mapping[str, float] = made(default_factory=dict)
    fail_rate: float | None = None
    workflows: Collection[str] = ()  # play only the schedules of these; empty: all
    down: Sequence[tuple[datetime, datetime]] = ()  # when no scheduler runs

    def check(self) -> None:
        """UsageError if the range is empty, reversed or too long."""
        if self.end <= self.start:
            raise UsageError(
                "--to is not after --from", hint="give the earlier time first: --from 2026-01-01 --to 2026-04-01"
            )
        if self.end - self.start > LONGEST:
            days = (self.end - self.start).days
            raise UsageError(f"{days} days are too long", hint=f"choose at most {LONGEST.days} days")
        if any(until <= since for since, until in self.down):
            raise UsageError("--down ends before it begins", hint="give the earlier time first: FROM/TO")

    def down_until(self, now: datetime) -> datetime | None:
        """When a scheduler runs again; None if one runs now."""
        return max((until for since, until in self.down if since <= now < until), default=None)

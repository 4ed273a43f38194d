"""Clocks that move only on request."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class FakeClock:
    """A clock that moves only by `advance`. The wall time may be wrong or jump; the monotonic time never does."""

    def __init__(self, start: datetime = EPOCH, elapsed: Callable[[], float] | None = None) -> None:
        self._start = start
        self._elapsed = elapsed
        self._advanced = 0.0
        self.offset = 0.0

    def monotonic(self) -> float:
        return self._advanced + (self._elapsed() if self._elapsed is not None else 0.0)

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self.monotonic() + self.offset)

    def advance(self, seconds: float) -> None:
        if seconds < 0:
            raise ValueError("time does not run backwards; use jump() for a wall clock that is set back")
        self._advanced += seconds

    def jump(self, seconds: float) -> None:
        """Set the wall clock forward or back, as an administrator or NTP would."""
        self.offset += seconds

"""Telling of trouble that lasts without filling the log with it."""

from __future__ import annotations

from collections.abc import Callable

from ork.errors import OrkError
from ork.telemetry import Telemetry, TelemetryEvent

FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 30.0


class Trouble:
    """Told of at first, then ever more rarely while it lasts; its end is told of, too."""

    def __init__(self, telemetry: Telemetry, monotonic: Callable[[], float]) -> None:
        self._telemetry = telemetry
        self._monotonic = monotonic
        self._is_there = False
        self._tell_again_at = 0.0
        self._pause = FIRST_PAUSE_SECONDS

    def tell(self, problem: OrkError, told_as: TelemetryEvent) -> None:
        mono = self._monotonic()
        if not self._is_there:
            self._is_there, self._pause = True, FIRST_PAUSE_SECONDS
        elif mono < self._tell_again_at:
            return
        self._tell_again_at = mono + self._pause
        self._pause = min(2 * self._pause, LONGEST_PAUSE_SECONDS)
        self._telemetry.emit(told_as, why=problem.message)

    def is_over(self) -> None:
        if self._is_there:
            self._is_there = False
            self._telemetry.emit(TelemetryEvent.STORE_RECOVERED)

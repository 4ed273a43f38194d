"""Reports a lasting error without filling the log."""

from __future__ import annotations

from collections.abc import Callable

from ork.errors import OrkError
from ork.telemetry import Telemetry, TelemetryEvent

FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 30.0


class ErrorReporter:
    """Emits the first error, further ones at growing intervals, and an event when the error is over."""

    def __init__(self, telemetry: Telemetry, monotonic: Callable[[], float]) -> None:
        self._telemetry = telemetry
        self._monotonic = monotonic
        self._is_failing = False
        self._report_again_at = 0.0
        self._pause = FIRST_PAUSE_SECONDS

    def report(self, problem: OrkError, event: TelemetryEvent) -> None:
        mono = self._monotonic()
        if not self._is_failing:
            self._is_failing, self._pause = True, FIRST_PAUSE_SECONDS
        elif mono < self._report_again_at:
            return
        self._report_again_at = mono + self._pause
        self._pause = min(2 * self._pause, LONGEST_PAUSE_SECONDS)
        self._telemetry.emit(event, why=problem.message)

    def clear(self) -> None:
        if self._is_failing:
            self._is_failing = False
            self._telemetry.emit(TelemetryEvent.STORE_RECOVERED)

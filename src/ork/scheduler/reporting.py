"""What a scheduler reports: telemetry events for runs and attempts, and lasting errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ork.errors import OrkError
from ork.model.run import Run
from ork.model.task import Attempt
from ork.telemetry import Telemetry, TelemetryEvent


def emit_launches(telemetry: Telemetry, launched: Sequence[tuple[Attempt, Run]]) -> None:
    if not telemetry.has_listener(TelemetryEvent.ATTEMPT_LAUNCHED):
        telemetry.count(TelemetryEvent.ATTEMPT_LAUNCHED, len(launched))
        return
    for attempt, run in launched:
        telemetry.emit(TelemetryEvent.ATTEMPT_LAUNCHED, attempt=attempt.key, workflow=run.workflow)


def emit_ends(telemetry: Telemetry, ended: Iterable[Attempt], run: Run) -> None:
    if telemetry.pending_metrics:
        for attempt in ended:
            telemetry.count_metrics(attempt.key, run.workflow)
    if not telemetry.has_listener(TelemetryEvent.ATTEMPT_ENDED):
        telemetry.count_ends(TelemetryEvent.ATTEMPT_ENDED, [attempt.status for attempt in ended])
        return
    for attempt in ended:
        telemetry.emit(TelemetryEvent.ATTEMPT_ENDED, **describe_attempt(attempt, run))


def describe(run: Run) -> dict[str, Any]:
    return {
        "run": run.id,
        "workflow": run.workflow,
        "status": str(run.status),
        "error": run.error,
        "trigger": str(run.trigger),
        "round": run.round,
        "parent": run.parent,
        "scheduled_for": run.scheduled_for,
        "created_at": run.created_at,
        "started_at": run.started_at,
        "finished_at": run.finished_at,
    }


def describe_attempt(attempt: Attempt, run: Run) -> dict[str, Any]:
    return {
        "attempt": attempt.key,
        "workflow": run.workflow,
        "status": str(attempt.status),
        "error": attempt.failure.message if attempt.failure else None,
        "executor": attempt.executor,
        "round": run.round,
        "exit_code": attempt.exit_code,
        "dispatched_at": attempt.dispatched_at,
        "started_at": attempt.started_at,
        "finished_at": attempt.finished_at,
    }


FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 30.0


class ErrorReporter:
    """Reports a lasting error without filling the log: emits the first one, further ones at growing intervals, and an event
    when the error is over."""

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

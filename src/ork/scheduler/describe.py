"""Telemetry events for runs and attempts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

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

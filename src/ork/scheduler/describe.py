"""What the telemetry is told of runs and attempts."""

from __future__ import annotations

from typing import Any

from ork.core.decisions import Decisions
from ork.model.run import Run
from ork.model.task import Attempt
from ork.telemetry import Happening, Telemetry


def tell_of_ends(telemetry: Telemetry, decisions: Decisions, run: Run) -> None:
    for attempt in decisions.attempts:
        if attempt.status.is_final:
            telemetry.tell(Happening.ATTEMPT_ENDED, **describe_attempt(attempt, run))
    if decisions.run is not None and run.status.is_final:
        telemetry.tell(Happening.RUN_FINISHED, **describe(run))


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

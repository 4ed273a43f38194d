"""The span of a telemetry event. Pure: all it needs is in the fields of the event."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from ork.model.ids import AttemptKey
from ork.telemetry import TelemetryEvent
from ork.traces.ids import attempt_span_id, run_span_id, trace_id

OK_STATUSES = frozenset({"success", "cancelled"})


class SpanLink(NamedTuple):
    trace: int
    span: int


class RunSpan(NamedTuple):
    """A span in Ork's own form. `parent` is None for a run."""

    name: str
    trace: int
    span: int
    parent: int | None
    begin: datetime
    end: datetime
    attributes: dict[str, str | int]
    error: str | None
    work_began: datetime | None = None  # user code ran from then on; before, the attempt was being started
    link: SpanLink | None = None  # the trace that this one comes from


def span_of(event: TelemetryEvent, fields: Mapping[str, Any]) -> RunSpan | None:
    match event:
        case TelemetryEvent.RUN_FINISHED:
            return _of_run(fields)
        case TelemetryEvent.ATTEMPT_ENDED:
            return _of_attempt(fields)
        case _:
            return None


def _of_run(fields: Mapping[str, Any]) -> RunSpan:
    run, round = fields["run"], fields["round"]
    begin = fields["started_at"] or fields["created_at"]
    attributes = {
        "ork.workflow": fields["workflow"],
        "ork.run": run,
        "ork.round": round,
        "ork.trigger": fields["trigger"],
        "ork.scheduled_for": fields["scheduled_for"] and fields["scheduled_for"].isoformat(),
        "ork.status": fields["status"],
    }
    return RunSpan(
        name=fields["workflow"],
        trace=trace_id(run),
        span=run_span_id(run, round),
        parent=None,
        begin=begin,
        end=fields["finished_at"] or begin,
        attributes=_known(attributes),
        error=_error(fields),
        link=_link(fields["parent"]),
    )


def _of_attempt(fields: Mapping[str, Any]) -> RunSpan:
    key: AttemptKey = fields["attempt"]
    attributes = {
        "ork.workflow": fields["workflow"],
        "ork.run": key.run,
        "ork.task": key.task.name,
        "ork.index": key.task.index,
        "ork.attempt": key.number,
        "ork.executor": fields["executor"],
        "ork.exit_code": fields["exit_code"],
        "ork.status": fields["status"],
    }
    return RunSpan(
        name=str(key.task),
        trace=trace_id(key.run),
        span=attempt_span_id(str(key)),
        parent=run_span_id(key.run, fields["round"]),
        begin=fields["dispatched_at"],
        end=fields["finished_at"] or fields["dispatched_at"],
        attributes=_known(attributes),
        error=_error(fields),
        work_began=fields["started_at"],
    )


def _link(parent: str | None) -> SpanLink | None:
    """To the attempt that started this run as a sub-workflow, or to the run it repeats."""
    if parent is None:
        return None
    run, is_attempt, _ = parent.partition("/")
    return SpanLink(trace_id(run), attempt_span_id(parent) if is_attempt else run_span_id(run, 1))


def _known(attributes: Mapping[str, Any]) -> dict[str, str | int]:
    return {name: value for name, value in attributes.items() if value is not None}


def _error(fields: Mapping[str, Any]) -> str | None:
    return None if fields["status"] in OK_STATUSES else str(fields["error"] or fields["status"])

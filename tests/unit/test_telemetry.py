"""Every event is counted, with or without listeners; listeners get all its fields."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from ork.model.ids import AttemptKey, RunId, TaskKey, VersionId
from ork.model.run import Run, RunStatus
from ork.model.task import Attempt, AttemptStatus
from ork.model.workflow import Trigger
from ork.scheduler.reporting import emit_ends, emit_launches
from ork.telemetry import MAX_SERIES, Telemetry, TelemetryEvent

NOW = datetime(2026, 1, 1, tzinfo=UTC)
RUN = Run(RunId("r1"), "etl", VersionId("v1"), RunStatus.RUNNING, Trigger.MANUAL, {}, NOW)


def attempt(name: str, status: AttemptStatus) -> Attempt:
    return Attempt(AttemptKey(RUN.id, TaskKey(name), 1), status, "process", name, "hash", NOW)


ENDED = [attempt("a", AttemptStatus.SUCCESS), attempt("b", AttemptStatus.SUCCESS), attempt("c", AttemptStatus.FAILED)]


def test_a_listener_gets_only_the_events_it_named() -> None:
    telemetry, some, everything = Telemetry(), [], []
    telemetry.listen(lambda event, _: some.append(event), TelemetryEvent.READY, TelemetryEvent.STOPPED)
    telemetry.listen(lambda event, _: everything.append(event))
    for event in (TelemetryEvent.READY, TelemetryEvent.RUN_FENCED, TelemetryEvent.STOPPED):
        telemetry.emit(event)
    assert some == [TelemetryEvent.READY, TelemetryEvent.STOPPED]
    assert everything == [TelemetryEvent.READY, TelemetryEvent.RUN_FENCED, TelemetryEvent.STOPPED]


@pytest.mark.parametrize("has_listener", [True, False])
def test_launches_and_ends_are_counted_with_and_without_listeners(has_listener: bool) -> None:
    telemetry, told = Telemetry(), []
    if has_listener:
        telemetry.listen(lambda _, fields: told.append((fields["attempt"].task.name, fields["workflow"])))
    emit_launches(telemetry, [(each, RUN) for each in ENDED])
    emit_ends(telemetry, ENDED, RUN)
    assert telemetry.counts == {"attempt_launched": 3, "attempt_ended": 3}
    assert telemetry.ended == {("attempt", "success"): 2, ("attempt", "failed"): 1}
    assert told == [(name, "etl") for name in ("a", "b", "c", "a", "b", "c")] * has_listener


def test_series_of_tasks_own_metrics_are_bounded() -> None:
    telemetry = Telemetry()
    for number in range(MAX_SERIES + 5):
        key = AttemptKey(RunId("r"), TaskKey("t", number), 1)
        telemetry.note_metrics(key, {f"m{number}": 1.0})
        telemetry.count_metrics(key, "w")
    assert len(telemetry.metrics) == MAX_SERIES
    assert telemetry.metrics_dropped == 5
    assert not telemetry.pending_metrics

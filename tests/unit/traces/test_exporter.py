"""What becomes of spans whose collector is slow, down or too small."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from ork.model.ids import AttemptKey, RunId, TaskKey
from ork.model.run import Run, RunStatus
from ork.model.task import Attempt, AttemptStatus
from ork.model.workflow import Trigger, VersionId
from ork.scheduler.reporting import describe, describe_attempt
from ork.telemetry import Telemetry, TelemetryEvent
from ork.traces.spans import span_of
from tests.loopback import Loopback, loopback

sender = pytest.importorskip(
    "ork.traces.exporter", reason="the OpenTelemetry SDK is not installed: no traces are tried"
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
RUN = Run(RunId("r1"), "shop", VersionId("v"), RunStatus.SUCCESS, Trigger.MANUAL, {}, NOW, finished_at=NOW)
KEY = AttemptKey(RunId("r1"), TaskKey("load", 3), 2)
ATTEMPT = Attempt(KEY, AttemptStatus.SUCCESS, "process", "x", "h", NOW, finished_at=NOW + timedelta(seconds=2))


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Loopback]:
    with loopback() as site:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", site.url)
        yield site


def tell(telemetry: Telemetry) -> None:
    telemetry.emit(TelemetryEvent.ATTEMPT_ENDED, **describe_attempt(ATTEMPT, RUN))


def started() -> tuple[Telemetry, sender.TraceExporter]:
    telemetry = Telemetry()
    traces = sender.TraceExporter(telemetry)
    telemetry.listen(traces)
    return telemetry, traces


def test_spans_that_arrive_are_counted_as_sent(collector: Loopback) -> None:
    collector.answers["/v1/traces"] = (200, b"")
    telemetry, traces = started()
    tell(telemetry)
    telemetry.emit(TelemetryEvent.RUN_FINISHED, **describe(RUN))
    telemetry.emit(TelemetryEvent.READY)
    traces.close()
    assert telemetry.spans["sent"] == 2
    assert len(collector.asked) == 1


def test_rejected_spans_are_counted_and_logged_once(collector: Loopback) -> None:
    collector.answers["/v1/traces"] = (400, {})
    telemetry, traces = started()
    heard: list[str] = []
    telemetry.listen(lambda event, fields: heard.append(str(event)))
    tell(telemetry)
    traces.close()
    assert telemetry.spans["failed"] == 1
    assert heard.count("traces_failed") == 1


def test_an_unresponsive_collector_does_not_delay_the_scheduler(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sender, "CLOSE_SECONDS", 0.3)
    monkeypatch.setattr(sender, "BATCH_SECONDS", 0.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{silent.getsockname()[1]}")
        telemetry, traces = started()
        tell(telemetry)
        asked, _ = silent.accept()
        tell(telemetry)
        traces.close()
        assert (telemetry.spans["failed"], telemetry.spans["overflowed"]) == (1, 1)
        assert telemetry.counts[TelemetryEvent.TRACES_FAILED] == 1
        asked.close()


def test_more_than_can_wait_is_dropped_at_once_and_counted(
    collector: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender, "MAX_QUEUED", 3)
    telemetry, traces = started()
    is_held = threading.Event()
    monkeypatch.setattr(traces, "_send_until_closed", is_held.wait)  # the collector keeps the thread busy
    for _ in range(10):
        tell(telemetry)
    assert telemetry.spans["overflowed"] == 7
    is_held.set()
    traces.close()
    assert telemetry.spans["overflowed"] == 10


def test_a_retry_of_a_run_is_a_span_of_its_own_in_the_same_trace() -> None:
    fields = describe(RUN)
    first, second = (span_of(TelemetryEvent.RUN_FINISHED, {**fields, "round": number}) for number in (1, 2))
    assert first is not None
    assert second is not None
    assert first.trace == second.trace
    assert first.span != second.span
    below = span_of(TelemetryEvent.ATTEMPT_ENDED, {**describe_attempt(ATTEMPT, RUN), "round": 2})
    assert below is not None
    assert (below.trace, below.parent, below.name) == (second.trace, second.span, "load[3]")


def test_a_sub_workflow_is_linked_to_the_attempt_it_belongs_to() -> None:
    child = span_of(TelemetryEvent.RUN_FINISHED, {**describe(RUN), "run": "r2", "parent": str(KEY)})
    attempt = span_of(TelemetryEvent.ATTEMPT_ENDED, describe_attempt(ATTEMPT, RUN))
    assert child is not None
    assert attempt is not None
    assert child.link == (attempt.trace, attempt.span)
    assert child.trace != attempt.trace

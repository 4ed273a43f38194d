"""Sends spans to an OpenTelemetry collector, in a separate thread.

The scheduler only queues events: creating spans, waiting for the collector and retrying are done by the thread. Spans
that do not fit or cannot be sent are dropped and counted; they never delay the scheduler.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.trace import Link, NonRecordingSpan, SpanContext, Status, StatusCode, TraceFlags, set_span_in_context

from ork.model.ids import AttemptKey
from ork.telemetry import Telemetry, TelemetryEvent
from ork.traces.ids import trace_id, traceparent
from ork.traces.spans import RunSpan, SpanLink, span_of

if TYPE_CHECKING:
    from opentelemetry.context import Context

MAX_QUEUED = 4096
BATCH_SIZE = 512
BATCH_SECONDS = 0.5  # spans of this period are sent together
CLOSE_SECONDS = 2.0

_Queued = tuple[TelemetryEvent, dict[str, Any]]


class TraceExporter:
    """A listener of `Telemetry`. The OTEL_ variables configure endpoint, sampling and resource attributes of the SDK."""

    def __init__(self, telemetry: Telemetry) -> None:
        # Its warnings would mix with the log of the service; lost spans are counted and logged here.
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
        self._telemetry = telemetry
        self._exporter = OTLPSpanExporter()
        self._ids = _FixedIds()
        self._ended = _Ended()
        self._provider = TracerProvider(resource=_resource(), id_generator=self._ids, shutdown_on_exit=False)
        self._provider.add_span_processor(self._ended)
        self._tracer = self._provider.get_tracer("ork")
        self._waiting: queue.Queue[_Queued | None] = queue.Queue(MAX_QUEUED)
        self._in_flight = 0  # spans passed to the collector and not yet accepted
        self._is_failing = False
        self._is_reported = False
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def __call__(self, event: TelemetryEvent, fields: dict[str, Any]) -> None:
        if event not in (TelemetryEvent.RUN_FINISHED, TelemetryEvent.ATTEMPT_ENDED):
            return
        try:
            self._waiting.put_nowait((event, fields))
        except queue.Full:
            self._telemetry.spans["overflowed"] += 1
        if self._thread is None:
            self._thread = threading.Thread(target=self._send_until_closed, name="ork-traces", daemon=True)
            self._thread.start()
        self._report_failure()

    def traceparent(self, attempt: AttemptKey) -> str:
        return traceparent(attempt, is_sampled=self._is_sampled(trace_id(attempt.run)))

    def close(self) -> None:
        """Send what is queued within a short time; then drop it."""
        self._closing.set()
        if self._thread is not None:
            with contextlib.suppress(queue.Full):  # a full queue wakes the thread anyway
                self._waiting.put_nowait(None)
            self._thread.join(CLOSE_SECONDS)
            if self._thread.is_alive():
                self._is_failing = True
                self._telemetry.spans["failed"] += self._in_flight
        self._exporter.shutdown()
        self._telemetry.spans["overflowed"] += len(_take_queued(self._waiting, MAX_QUEUED))
        self._report_failure()

    def _report_failure(self) -> None:
        """Called in the scheduler's thread; logs a failure once until it works again."""
        is_failing = self._is_failing
        if is_failing and not self._is_reported:
            self._telemetry.emit(
                TelemetryEvent.TRACES_FAILED, why="the collector does not accept spans: they are dropped"
            )
        self._is_reported = is_failing

    # ── in the sending thread ────────────────────────────────────────────────────────────────────

    def _send_until_closed(self) -> None:
        while (first := self._waiting.get()) is not None:
            self._closing.wait(BATCH_SECONDS)
            self._send([first, *_take_queued(self._waiting, BATCH_SIZE - 1)])
            if self._closing.is_set() and self._waiting.empty():
                return

    def _send(self, queued: Iterable[_Queued]) -> None:
        for event, fields in queued:
            span = span_of(event, fields)
            if span is not None:
                self._make(span)
        spans = self._ended.take()
        if not spans:
            return
        self._in_flight = len(spans)
        self._is_failing = not self._export(spans)
        self._telemetry.spans["failed" if self._is_failing else "sent"] += len(spans)

    def _export(self, spans: list[ReadableSpan]) -> bool:
        try:
            return self._exporter.export(spans) is SpanExportResult.SUCCESS
        except Exception:  # an unexpected response must not end the thread
            return False

    def _make(self, span: RunSpan) -> None:
        self._ids.trace, self._ids.span = span.trace, span.span
        made = self._tracer.start_span(
            span.name,
            context=self._below(span),
            attributes=span.attributes,
            links=[Link(self._remote_context(span.link))] if span.link else (),
            start_time=_nanoseconds(span.begin),
        )
        if span.work_began is not None:
            made.add_event("started", timestamp=_nanoseconds(span.work_began))
        made.set_status(Status(StatusCode.OK) if span.error is None else Status(StatusCode.ERROR, span.error))
        made.end(_nanoseconds(span.end))

    def _below(self, span: RunSpan) -> Context | None:
        if span.parent is None:
            return None
        return set_span_in_context(NonRecordingSpan(self._remote_context(SpanLink(span.trace, span.parent))))

    def _remote_context(self, link: SpanLink) -> SpanContext:
        flags = TraceFlags(TraceFlags.SAMPLED if self._is_sampled(link.trace) else TraceFlags.DEFAULT)
        return SpanContext(link.trace, link.span, is_remote=True, trace_flags=flags)

    def _is_sampled(self, trace: int) -> bool:
        return self._provider.sampler.should_sample(None, trace, "run").decision is Decision.RECORD_AND_SAMPLE


class _FixedIds(IdGenerator):
    """The ids of the span being created."""

    trace = span = 1

    def generate_trace_id(self) -> int:
        return self.trace

    def generate_span_id(self) -> int:
        return self.span


class _Ended(SpanProcessor):
    """Collects finished spans until they are taken."""

    def __init__(self) -> None:
        self._spans: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        self._spans.append(span)

    def take(self) -> list[ReadableSpan]:
        spans, self._spans = self._spans, []
        return spans


def _resource() -> Resource:
    """The service name is `ork` unless OTEL_SERVICE_NAME or OTEL_RESOURCE_ATTRIBUTES sets another one."""
    found = Resource.create()
    is_named = not str(found.attributes.get(SERVICE_NAME, "unknown_service")).startswith("unknown_service")
    return found if is_named else found.merge(Resource({SERVICE_NAME: "ork"}))


def _take_queued(waiting: queue.Queue[_Queued | None], most: int) -> list[_Queued]:
    found: list[_Queued] = []
    while len(found) < most:
        try:
            queued = waiting.get_nowait()
        except queue.Empty:
            break
        if queued is not None:
            found.append(queued)
    return found


def _nanoseconds(time: datetime) -> int:
    return int(time.timestamp() * 1_000_000) * 1000

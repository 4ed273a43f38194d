"""Telemetry of the services: named events with fields, from which log lines, metrics and traces are made."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any

from ork.model.ids import AttemptKey
from ork.model.record import Record

Listener = Callable[["TelemetryEvent", dict[str, Any]], None]


class TelemetryEvent(StrEnum):
    READY = "ready"
    STOPPED = "stopped"
    RUN_STARTED = "run_started"
    RUN_ADOPTED = "run_adopted"  # taken over from another scheduler
    RUN_FINISHED = "run_finished"
    ATTEMPT_LAUNCHED = "attempt_launched"
    ATTEMPT_ENDED = "attempt_ended"
    RUN_FENCED = "run_fenced"
    RUN_QUARANTINED = "run_quarantined"
    STEP = "step"  # a step that did something; only for listeners that name it
    STEP_FAILED = "step_failed"
    STORE_FAILED = "store_failed"
    STORE_RECOVERED = "store_recovered"
    DOCUMENT_REFUSED = "document_refused"
    START_FAILED = "start_failed"
    SCHEDULE_FIRED = "schedule_fired"
    SCHEDULE_MISSED = "schedule_missed"  # scheduled times passed without a run
    SCHEDULE_FAILED = "schedule_failed"  # its next time cannot be computed
    ALERT_SENT = "alert_sent"
    ALERT_FAILED = "alert_failed"
    LOCATION_REFRESHED = "location_refreshed"  # its current content is in use
    LOCATION_FAILED = "location_failed"  # the last good version stays in use
    OBJECTS_FAILED = "objects_failed"  # an attempt's documents cannot be read or written at the moment
    API_FAILED = "api_failed"  # an internal error: the client got a 500
    FALLBACK = "fallback"  # a slower path is in use
    ALARM_FAILED = "alarm_failed"  # the alarm cannot be set, so due work may wait for the safety tick
    TRACES_FAILED = "traces_failed"  # spans are dropped because the collector does not accept them


MAX_SERIES = 1000  # limit on metrics of tasks: users choose the names, and a time series database pays for each
MAX_PENDING = 10_000

# Components with a slower alternative.
FORK_SERVER = "fork server"
WORKER_POOL = "worker pool"
PRELOADING = "preloading"
NEWS_SOCKET = "news socket"
JOURNAL = "journal"
NOTIFICATIONS = "notifications"
FALLBACK_LOG_SECONDS = 300.0
MAX_FALLBACK_REASON = 500

_ENDINGS = {TelemetryEvent.RUN_FINISHED: "run", TelemetryEvent.ATTEMPT_ENDED: "attempt"}


class WorkTime(Record, frozen=False):
    """How often some work was done, and how long it took."""

    count: int = 0
    seconds: float = 0.0
    longest: float = 0.0

    def add(self, count: int, seconds: float, longest: float) -> None:
        self.count += count
        self.seconds += seconds
        if longest > self.longest:
            self.longest = longest


class TaskMetric(Record, frozen=False):
    """A metric of a task over the attempts that ended: count, sum and last value."""

    count: int = 0
    total: float = 0.0
    last: float = 0.0


class Fallbacks:
    """The components that currently use a slower path, and why.

    A fast path that falls back (a fork server that crashed, a journal replaced by plain files) changes no result, so it
    would go unnoticed. Each fallback is counted for the metrics, logged at most every few minutes, and kept while it
    lasts, so that the scheduler's row in the store can show it in `ork status` and `ork doctor`. `log` is called with
    component and reason when there is something new to log."""

    def __init__(self, log: Callable[[str, str], None], monotonic: Callable[[], float] = time.monotonic) -> None:
        self.counts: Counter[str] = Counter()
        self._log = log
        self._monotonic = monotonic
        self._reasons: dict[str, str] = {}
        self._logged: dict[str, float] = {}

    def note(self, component: str, reason: str) -> None:
        """The component does not use its fast path, this time or from now on."""
        reason = " ".join(reason.split())[:MAX_FALLBACK_REASON]
        self.counts[component] += 1
        is_new = self._reasons.get(component) != reason
        self._reasons[component] = reason
        if is_new or self._monotonic() >= self._logged[component] + FALLBACK_LOG_SECONDS:
            self._logged[component] = self._monotonic()
            self._log(component, reason)

    def clear(self, component: str) -> None:
        """The component uses its fast path again."""
        self._reasons.pop(component, None)

    @property
    def reasons(self) -> dict[str, str]:
        """The current reasons by component."""
        return dict(self._reasons)

    @property
    def notes(self) -> tuple[str, ...]:
        """One sentence for each current fallback."""
        return tuple(f"{component}: {reason}" for component, reason in sorted(self._reasons.items()))


class Telemetry:
    """Counts events and passes them to listeners."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.ended: Counter[tuple[str, str]] = Counter()  # runs and attempts by final status
        self.spans: Counter[str] = Counter()  # spans of traces by outcome
        self.spent: defaultdict[str, WorkTime] = defaultdict(WorkTime)
        self.metrics: dict[tuple[str, str, str], TaskMetric] = {}  # metrics of tasks, by workflow, task and name
        self.metrics_dropped = 0  # values above the limit
        self.pending_metrics: dict[AttemptKey, Mapping[str, float]] = {}  # of attempts whose end is not committed yet
        self.fallbacks = Fallbacks(
            lambda component, why: self.emit(TelemetryEvent.FALLBACK, component=component, why=why)
        )
        self._listeners: defaultdict[TelemetryEvent, list[Listener]] = defaultdict(list)

    def listen(self, listener: Listener, *only: TelemetryEvent) -> None:
        """Call the listener for these events, or for all but STEP. Frequent events are formatted only if there is a
        listener."""
        for event in only or (each for each in TelemetryEvent if each is not TelemetryEvent.STEP):
            self._listeners[event].append(listener)

    @property
    def emitted_events(self) -> tuple[TelemetryEvent, ...]:
        """All events; STEP only if it has a listener."""
        return tuple(each for each in TelemetryEvent if each is not TelemetryEvent.STEP or self.has_listener(each))

    def has_listener(self, event: TelemetryEvent) -> bool:
        return bool(self._listeners[event])

    def emit(self, event: TelemetryEvent, **fields: Any) -> None:
        if event in _ENDINGS:
            self.count_ends(event, [str(fields.get("status"))])
        else:
            self.count(event)
        for listener in self._listeners[event]:
            listener(event, fields)

    def count(self, event: TelemetryEvent, number: int = 1) -> None:
        self.counts[event] += number

    def count_ends(self, event: TelemetryEvent, statuses: Sequence[str]) -> None:
        self.counts[event] += len(statuses)
        for status in set(statuses):
            self.ended[_ENDINGS[event], status] += statuses.count(status)

    def note_metrics(self, attempt: AttemptKey, values: Mapping[str, float]) -> None:
        """Keep the metrics of a task; they are counted once its end is committed."""
        if len(self.pending_metrics) < MAX_PENDING:
            self.pending_metrics[attempt] = values

    def count_metrics(self, attempt: AttemptKey, workflow: str) -> None:
        for name, value in self.pending_metrics.pop(attempt, {}).items():
            series = workflow, attempt.task.name, name
            if series not in self.metrics and len(self.metrics) >= MAX_SERIES:
                self.metrics_dropped += 1
                continue
            measured = self.metrics.setdefault(series, TaskMetric())
            measured.count += 1
            measured.total += value
            measured.last = value

    def took(self, work: str, seconds: float) -> None:
        self.spent[work].add(1, seconds, seconds)

    def lap_timer(self, monotonic: Callable[[], float]) -> Callable[[str], None]:
        """Returns a function to call after each part of some work; it records the time since the last call."""
        since = monotonic()

        def done(part: str) -> None:
            nonlocal since
            before, since = since, monotonic()
            self.spent[part].add(1, since - before, since - before)

        return done

    def merge(self, other: Telemetry) -> None:
        """Add the times, spans and task metrics of a service that has ended."""
        self.spans.update(other.spans)
        self.fallbacks.counts.update(other.fallbacks.counts)
        self.metrics_dropped += other.metrics_dropped
        for series, measured in other.metrics.items():
            known = self.metrics.get(series)
            if known is None and len(self.metrics) >= MAX_SERIES:
                self.metrics_dropped += measured.count
                continue
            known = self.metrics.setdefault(series, TaskMetric())
            known.count, known.total, known.last = (
                known.count + measured.count,
                known.total + measured.total,
                measured.last,
            )
        for work, spent in other.spent.items():
            self.spent[work].add(spent.count, spent.seconds, spent.longest)

"""Prometheus metrics, built for each request: counters of this process, gauges of the store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from prometheus_client.core import (
    CollectorRegistry,
    CounterMetricFamily,
    GaugeMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from ork.model.run import RunStatus, SchedulerEntry
from ork.state.reading import StateReader
from ork.state.records import LimitUse
from ork.status.schedulers import Liveness, liveness
from ork.telemetry import Telemetry

MEDIA_TYPE = CONTENT_TYPE_LATEST
_EVENT_COUNTERS = {
    "ork_events": "Events of this process, by name.",
    "ork_happenings": "Deprecated name of ork_events_total; removed in 0.3.0.",
}


async def render_metrics(store: StateReader, telemetry: Telemetry) -> bytes:
    """The metrics as text. The cost depends on unfinished runs only, not on history."""
    runs = await store.count_unfinished()
    limits, schedulers = await store.limit_use(), await store.list_schedulers()
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_CurrentMetrics(telemetry, runs, limits, schedulers))
    return bytes(generate_latest(registry))


class _CurrentMetrics(Collector):
    def __init__(
        self,
        telemetry: Telemetry,
        runs: Mapping[RunStatus, int],
        limits: Sequence[LimitUse],
        schedulers: Sequence[SchedulerEntry],
    ) -> None:
        self._telemetry = telemetry
        self._runs = runs
        self._limits = limits
        self._schedulers = schedulers

    def collect(self) -> Iterator[Metric]:
        yield from self._process_metrics()
        runs = GaugeMetricFamily("ork_runs", "Runs that have not ended, by status.", labels=["status"])
        for status, number in self._runs.items():
            runs.add_metric([status.value], number)
        yield runs
        slots = GaugeMetricFamily("ork_limit_slots", "How many attempts a limit allows.", labels=["limit"])
        used = GaugeMetricFamily("ork_limit_used", "How many attempts hold it.", labels=["limit"])
        for use in self._limits:
            slots.add_metric([use.name], use.slots)
            used.add_metric([use.name], use.used)
        yield from (slots, used)
        yield from self._scheduler_metrics()

    def _scheduler_metrics(self) -> Iterator[Metric]:
        """Schedulers of the whole installation; `ork run`, which schedules only its own run, is not counted."""
        found = [liveness(entry) for entry in self._schedulers if entry.kind != "run"]
        yield GaugeMetricFamily(
            "ork_schedulers",
            "Schedulers and ticks known to be alive: their lease is valid, or their process runs on this machine.",
            value=found.count(Liveness.ALIVE),
        )
        yield GaugeMetricFamily(
            "ork_schedulers_unverified",
            "Idle schedulers that may be alive: not in ork_schedulers, no lease, and out of reach of this machine.",
            value=found.count(Liveness.UNVERIFIED),
        )

    def _process_metrics(self) -> Iterator[Metric]:
        for name, help_text in _EVENT_COUNTERS.items():
            events = CounterMetricFamily(name, help_text, labels=["event"])
            for event, number in sorted(self._telemetry.counts.items()):
                events.add_metric([event], number)
            yield events
        ended = CounterMetricFamily("ork_ended", "Runs and attempts that ended, by status.", labels=["what", "status"])
        for (what, status), number in sorted(self._telemetry.ended.items()):
            ended.add_metric([what, status], number)
        yield ended
        yield from self._fallbacks()
        spans = CounterMetricFamily("ork_spans", "Spans of traces, by what became of them.", labels=["outcome"])
        for outcome, number in sorted(self._telemetry.spans.items()):
            spans.add_metric([outcome], number)
        yield spans
        yield from self._task_metrics()
        spent = SummaryMetricFamily("ork_seconds", "How long each kind of work took.", labels=["work"])
        slowest = GaugeMetricFamily("ork_seconds_max", "The longest of them.", labels=["work"])
        for work, time in sorted(self._telemetry.spent.items()):
            spent.add_metric([work], count_value=time.count, sum_value=time.seconds)
            slowest.add_metric([work], time.longest)
        yield from (spent, slowest)

    def _fallbacks(self) -> Iterator[Metric]:
        fallbacks = self._telemetry.fallbacks
        labels = ["component"]
        total = CounterMetricFamily("ork_fallbacks", "How often a part did without its fast path.", labels=labels)
        for component, number in sorted(fallbacks.counts.items()):
            total.add_metric([component], number)
        degraded = GaugeMetricFamily("ork_degraded", "Parts that do without their fast path now.", labels=labels)
        for component in sorted(fallbacks.reasons):
            degraded.add_metric([component], 1)
        yield from (total, degraded)

    def _task_metrics(self) -> Iterator[Metric]:
        """Values that tasks set with `ctx.metrics`, without the instance, so that the number of series is bounded."""
        labels = ["workflow", "task", "metric"]
        kept = SummaryMetricFamily("ork_task_metric", "What tasks of ended attempts measured.", labels=labels)
        last = GaugeMetricFamily("ork_task_metric_last", "The last value of each.", labels=labels)
        for series, measured in sorted(self._telemetry.metrics.items()):
            kept.add_metric(series, count_value=measured.count, sum_value=measured.total)
            last.add_metric(series, measured.last)
        yield from (kept, last)
        dropped = self._telemetry.metrics_dropped
        yield CounterMetricFamily("ork_task_metrics_dropped", "Values beyond the most series.", value=dropped)

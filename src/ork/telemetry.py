"""What the services say about their own work: named events with fields. Log lines, metrics and traces are made from them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any

from ork.fallbacks import Fallbacks
from ork.model.ids import AttemptKey
from ork.model.record import Record

Listener = Callable[["Happening", dict[str, Any]], None]


class Happening(StrEnum):
    READY = "ready"
    STOPPED = "stopped"
    RUN_STARTED = "run_started"
    RUN_ADOPTED = "run_adopted"  # somebody else had it before
    RUN_FINISHED = "run_finished"
    ATTEMPT_LAUNCHED = "attempt_launched"
    ATTEMPT_ENDED = "attempt_ended"
    RUN_FENCED = "run_fenced"
    RUN_QUARANTINED = "run_quarantined"
    STEP = "step"  # one that did something; only for those who ask for it by name
    STEP_FAILED = "step_failed"
    STORE_FAILED = "store_failed"
    STORE_RECOVERED = "store_recovered"
    DOCUMENT_REFUSED = "document_refused"
    START_FAILED = "start_failed"
    SCHEDULE_FIRED = "schedule_fired"
    SCHEDULE_MISSED = "schedule_missed"  # times went by without a run
    SCHEDULE_FAILED = "schedule_failed"  # nobody here can tell when it is due
    ALERT_SENT = "alert_sent"
    ALERT_FAILED = "alert_failed"
    LOCATION_REFRESHED = "location_refreshed"  # what it holds now has been taken over
    LOCATION_FAILED = "location_failed"  # the last good version goes on
    OBJECTS_FAILED = "objects_failed"  # an attempt's documents cannot be read or written for now
    API_FAILED = "api_failed"  # an error of ours: the caller got a 500
    FALLBACK = "fallback"  # a part works in a slower way than it should
    TRACES_FAILED = "traces_failed"  # spans are dropped: their collector does not take them


MOST_SERIES = 1000  # of tasks' own metrics: names are the user's, and a time series database pays for each
MOST_NOTED = 10_000

_ENDINGS = {Happening.RUN_FINISHED: "run", Happening.ATTEMPT_ENDED: "attempt"}


class Spent(Record, frozen=False):
    """How often some kind of work was done and how long it took."""

    count: int = 0
    seconds: float = 0.0
    longest: float = 0.0

    def add(self, count: int, seconds: float, longest: float) -> None:
        self.count += count
        self.seconds += seconds
        if longest > self.longest:
            self.longest = longest


class Measured(Record, frozen=False):
    """A metric of a task, over the attempts that ended: how many, the sum, and the last one."""

    count: int = 0
    total: float = 0.0
    last: float = 0.0


class Telemetry:
    """Counts everything; tells whoever listens."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.ended: Counter[tuple[str, str]] = Counter()  # runs and attempts, by the status they ended with
        self.spans: Counter[str] = Counter()  # of traces, by what became of them
        self.spent: defaultdict[str, Spent] = defaultdict(Spent)
        self.metrics: dict[tuple[str, str, str], Measured] = {}  # of tasks, by workflow, task and name
        self.metrics_dropped = 0  # values for which there was no room
        self.noted: dict[AttemptKey, Mapping[str, float]] = {}  # of attempts whose ends are not committed yet
        self.fallbacks = Fallbacks(lambda component, why: self.tell(Happening.FALLBACK, component=component, why=why))
        self._listeners: defaultdict[Happening, list[Listener]] = defaultdict(list)

    def listen(self, listener: Listener, *only: Happening) -> None:
        """To these, or to everything but steps. What happens by the thousand is put into words only where somebody listens."""
        for happening in only or (each for each in Happening if each is not Happening.STEP):
            self._listeners[happening].append(listener)

    @property
    def heard(self) -> tuple[Happening, ...]:
        """Everything, but steps only where somebody listens to them."""
        return tuple(each for each in Happening if each is not Happening.STEP or self.is_heard(each))

    def is_heard(self, happening: Happening) -> bool:
        return bool(self._listeners[happening])

    def tell(self, happening: Happening, **fields: Any) -> None:
        if happening in _ENDINGS:
            self.count_ends(happening, [str(fields.get("status"))])
        else:
            self.count(happening)
        for listener in self._listeners[happening]:
            listener(happening, fields)

    def count(self, happening: Happening, number: int = 1) -> None:
        self.counts[happening] += number

    def count_ends(self, happening: Happening, statuses: Sequence[str]) -> None:
        self.counts[happening] += len(statuses)
        for status in set(statuses):
            self.ended[_ENDINGS[happening], status] += statuses.count(status)

    def note_metrics(self, attempt: AttemptKey, values: Mapping[str, float]) -> None:
        """Numbers a task kept about itself; they count once its end is committed."""
        if len(self.noted) < MOST_NOTED:
            self.noted[attempt] = values

    def count_metrics(self, attempt: AttemptKey, workflow: str) -> None:
        for name, value in self.noted.pop(attempt, {}).items():
            series = workflow, attempt.task.name, name
            if series not in self.metrics and len(self.metrics) >= MOST_SERIES:
                self.metrics_dropped += 1
                continue
            measured = self.metrics.setdefault(series, Measured())
            measured.count += 1
            measured.total += value
            measured.last = value

    def took(self, work: str, seconds: float) -> None:
        self.spent[work].add(1, seconds, seconds)

    def laps(self, monotonic: Callable[[], float]) -> Callable[[str], None]:
        """To be called with its name after each part of some work: it took the time since the last call."""
        since = monotonic()

        def done(part: str) -> None:
            nonlocal since
            before, since = since, monotonic()
            self.spent[part].add(1, since - before, since - before)

        return done

    def add_what_was_spent(self, other: Telemetry) -> None:
        """Of somebody who worked for us and has ended: time, spans of traces, and tasks' own metrics."""
        self.spans.update(other.spans)
        self.fallbacks.counts.update(other.fallbacks.counts)
        self.metrics_dropped += other.metrics_dropped
        for series, measured in other.metrics.items():
            known = self.metrics.get(series)
            if known is None and len(self.metrics) >= MOST_SERIES:
                self.metrics_dropped += measured.count
                continue
            known = self.metrics.setdefault(series, Measured())
            known.count, known.total, known.last = (
                known.count + measured.count,
                known.total + measured.total,
                measured.last,
            )
        for work, spent in other.spent.items():
            self.spent[work].add(spent.count, spent.seconds, spent.longest)

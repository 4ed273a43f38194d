"""What the services say about their own work: named events with fields. Log lines and metrics are made from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from enum import StrEnum
from typing import Any

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
    STEP_FAILED = "step_failed"
    STORE_FAILED = "store_failed"
    STORE_RECOVERED = "store_recovered"
    DOCUMENT_REFUSED = "document_refused"
    START_FAILED = "start_failed"
    OBJECTS_FAILED = "objects_failed"  # an attempt's documents cannot be read or written for now


class Telemetry:
    """Counts everything; tells whoever listens."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._listeners: list[Listener] = []

    def listen(self, listener: Listener) -> None:
        self._listeners.append(listener)

    def tell(self, happening: Happening, **fields: Any) -> None:
        self.counts[happening] += 1
        for listener in self._listeners:
            listener(happening, fields)

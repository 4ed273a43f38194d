"""What an attempt says about itself."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ork.model.record import Record
from ork.model.task import Failure, Output

ENDS = frozenset({"success", "failed", "timed_out", "stopped"})
GOES_ON = frozenset({"running", "deferred"})


MOST_METRICS = 1000
_LONGEST_NAME = 200


def read_metrics(given: Any) -> dict[str, float] | None:
    """Names and finite numbers from a document; whatever else it holds is left out."""
    if not isinstance(given, dict):
        return None
    kept = {name: value for name, value in list(given.items())[:MOST_METRICS] if _is_metric(name, value)}
    return kept or None


def _is_metric(name: Any, value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(name, str) and 0 < len(name) <= _LONGEST_NAME and is_number and value - value == 0


class Status(Record):
    """A status document that has been checked, or what stands in for one where there is no worker to distrust."""

    seq: int
    state: str
    started_at: datetime
    at: datetime
    finished_at: datetime | None
    exit_code: int | None
    failure: Failure | None
    output: Output | None
    is_preparing: bool = False  # what the task needs is being built: its own time has not begun
    jobs: str | None = None  # as JSON: it waits for these, without a worker
    metrics: dict[str, float] | None = None  # numbers that the task kept about itself

    @property
    def is_final(self) -> bool:
        return self.state in ENDS

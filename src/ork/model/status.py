"""The status that an attempt reports."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ork.model.record import Record
from ork.model.task import Failure, Output

ENDS = frozenset({"success", "failed", "timed_out", "stopped"})
UNFINISHED_STATES = frozenset({"running", "deferred"})


MAX_METRICS = 1000
_MAX_NAME = 200


def read_metrics(given: Any) -> dict[str, float] | None:
    """The finite numbers in a metrics document, by name; other entries are dropped."""
    if not isinstance(given, dict):
        return None
    kept = {name: value for name, value in list(given.items())[:MAX_METRICS] if _is_metric(name, value)}
    return kept or None


def _is_metric(name: Any, value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(name, str) and 0 < len(name) <= _MAX_NAME and is_number and value - value == 0


class Status(Record):
    """A verified status document, or its equivalent where an attempt has no worker."""

    seq: int
    state: str
    started_at: datetime
    at: datetime
    finished_at: datetime | None
    exit_code: int | None
    failure: Failure | None
    output: Output | None
    is_preparing: bool = False  # its environment is being built; the timeout has not started
    jobs: str | None = None  # JSON: external jobs it waits for without a worker
    metrics: dict[str, float] | None = None  # numbers logged by the task

    @property
    def is_final(self) -> bool:
        return self.state in ENDS

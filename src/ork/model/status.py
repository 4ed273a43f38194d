"""What an attempt says about itself."""

from __future__ import annotations

from datetime import datetime

from ork.model.record import Record
from ork.model.task import Failure, Output

ENDS = frozenset({"success", "failed", "timed_out", "stopped"})
GOES_ON = frozenset({"running", "deferred"})


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

    @property
    def is_final(self) -> bool:
        return self.state in ENDS

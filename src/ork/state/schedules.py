"""The verbs of the state store for what is due by the clock: schedules, notices to people, and what is old.

A part of `ork.state.store.StateStore`; every sentence is a test in tests/conformance.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from ork.model.ids import RunId, VersionId
from ork.model.notice import Notice
from ork.model.record import Record
from ork.model.run import NewRun
from ork.model.workflow import Schedule


class ScheduleEntry(Record):
    """A workflow's schedule. `next_fire` is when it fires next; None while it is off or nobody has planned it yet."""

    workflow: str
    version: VersionId
    schedule: Schedule
    enabled: bool  # the workflow and its schedule both are
    next_fire: datetime | None
    unreadable: str | None = None  # why it cannot be decoded: it does not fire, and `schedule` says nothing


class UnsentAlert(Record):
    """A notice that did not reach everybody it is for: why not, and when it is tried again; None: it was given up."""

    notice: Notice
    error: str
    retry_at: datetime | None


class ScheduleVerbs(Protocol):
    # ── schedules ────────────────────────────────────────────────────────────────────────────────

    async def list_schedules(self) -> tuple[ScheduleEntry, ...]:
        """Those of all workflows, by name."""
        ...

    async def due_schedules(self, now: datetime) -> tuple[ScheduleEntry, ...]:
        """Those that are on and either fire at `now` or earlier or are not planned yet, by name."""
        ...

    async def next_fire_at(self, after: datetime) -> datetime | None:
        """The earliest planned time later than `after` of all schedules that are on."""
        ...

    async def fire(
        self,
        workflow: str,
        expected: datetime | None,
        runs: Sequence[NewRun],
        next_fire: datetime | None,
        now: datetime,
        *,
        missed: str | None = None,
    ) -> bool:
        """The runs are created as by `create_runs`, the schedule fires next at `next_fire`, and if times were
        `missed` people are to be told of it: all in one transaction.

        False, and nothing is written, if the schedule is off or its next time is not `expected`: somebody else fired
        it, or it was changed. So of any number of callers that expect the same time, one does it.
        """
        ...

    # ── what people are to be told ───────────────────────────────────────────────────────────────

    async def take_alerts(self, limit: int, now: datetime, hold_seconds: float = 60.0) -> tuple[Notice, ...]:
        """Up to `limit` notices that are due, oldest first. They are due again after `hold_seconds` unless settled,
        so nobody else sends them meanwhile, and somebody else does if the taker dies."""
        ...

    async def settle_alert(
        self, id: int, sent: Sequence[str], retry_at: datetime | None, error: str | None = None
    ) -> None:
        """These have been told. The rest is tried again at `retry_at`; None: the notice is done with."""
        ...

    async def unsent_alerts(self, limit: int) -> tuple[UnsentAlert, ...]:
        """Up to `limit` notices of which somebody has not been told after a try, newest first."""
        ...

    async def next_alert_at(self) -> datetime | None:
        """When the next notice is due; None: there is none."""
        ...

    # ── keeping house ────────────────────────────────────────────────────────────────────────────

    async def prunable_runs(self, before: datetime, limit: int, keep_last: int = 0) -> tuple[RunId, ...]:
        """Up to `limit` runs that ended before that moment, oldest first. Runs that have an owner, or a command
        waiting, and the newest `keep_last` of each workflow are none of them."""
        ...

    async def prune(self, before: datetime, limit: int, keep_last: int = 0) -> tuple[RunId, ...]:
        """Those runs and everything about them are forgotten, and notices of that age that belong to no run and are done
        with, in one small transaction. The runs' objects are the caller's to delete: the same transaction notes them as
        leftovers, so that a caller who dies loses none."""
        ...

    async def leftovers(self, limit: int) -> tuple[RunId, ...]:
        """Up to `limit` forgotten runs whose objects nobody has said to be gone, by id."""
        ...

    async def swept(self, runs: Sequence[RunId]) -> None:
        """The objects of these runs are gone: they are leftovers no more."""
        ...

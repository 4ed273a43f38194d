"""The state store for workflows, their schedules, code locations, and notices that are due.

Every sentence of a docstring is a test in tests/conformance.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from ork.model.location import LocationEntry, LocationScan
from ork.model.notice import Notice
from ork.model.run import NewRun
from ork.model.workflow import Version
from ork.state.reading import StateReader
from ork.state.records import LookAhead, ScheduleEntry


class ScheduleFiring(StateReader, Protocol):
    """Schedules that are due become runs."""

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
        `missed` there is a notice that says so: all or nothing.

        False, and nothing is written, if the schedule is off or its next time is not `expected`: somebody else fired
        it, or it was changed. So of any number of callers that expect the same time, one does it.
        """
        ...


class ScheduleStore(ScheduleFiring, Protocol):
    """Workflows, their schedules, code locations and notices."""

    # ── workflows ────────────────────────────────────────────────────────────────────────────────

    async def save_version(
        self, version: Version, *, origin: str | None, now: datetime, next_fire: datetime | None = None
    ) -> bool:
        """The version is durable and new runs of its workflow get it; True if it was not known before.

        Saving an identical version again changes nothing but which one is current (and enables the workflow). A
        schedule that is new, changed or was off fires next at `next_fire` (None: not planned yet); one that is as it
        was keeps its time, so that deploying again loses no time that is due. RefusedError if a location has this
        workflow and `origin` is not of that location.
        """
        ...

    async def set_enabled(self, workflow: str, enabled: bool, *, next_fire: datetime | None = None) -> bool:
        """A disabled workflow keeps its history and gets no new scheduled runs. False if unknown.

        A schedule that was off fires next at `next_fire` (None: not planned yet); one that was on keeps its time.
        """
        ...

    async def delete_workflow(self, workflow: str) -> bool:
        """The name is free again; its runs and versions stay. False if unknown, RefusedError while one of its runs has
        not ended or a location has it."""
        ...

    # ── code locations ───────────────────────────────────────────────────────────────────────────

    async def set_locations(self, sources: Mapping[str, str], now: datetime) -> None:
        """These locations are known, and no others. One that is new or has another source than before is due at once,
        and nothing has been seen of it yet; the others stay as they are.

        Workflows of a location that goes are disabled, and anybody may deploy them from then on.
        """
        ...

    async def ask_refresh(self, location: str, now: datetime) -> bool:
        """Somebody will scan it soon, and those who might are woken; what was not good counts as not seen, so that
        it is looked into again. False if unknown."""
        ...

    async def take_location(self, names: Collection[str], now: datetime, hold_seconds: float) -> LocationEntry | None:
        """One of these that is due or asked for, the one that waited longest first; None: there is none. Nobody else gets
        it until it is settled or `hold_seconds` have passed, so of any number of callers one looks."""
        ...

    async def keep_location(self, held: LocationEntry, now: datetime, hold_seconds: float) -> LocationEntry | None:
        """It is held for `hold_seconds` from now; for none, anybody may take it. None if it is not held as it was."""
        ...

    async def settle_location(self, held: LocationEntry, scan: LocationScan, due_at: datetime, now: datetime) -> bool:
        """What came of looking is kept, and the location is due again at `due_at`. False, and nothing is written, if it
        is not held as it was: the hold ran out and somebody else has it, or its source has changed."""
        ...

    async def next_location_at(self, names: Collection[str]) -> datetime | None:
        """When `take_location` has one of these to give; the time may have passed. None: there is none of them."""
        ...

    # ── notices to people ────────────────────────────────────────────────────────────────────────

    async def take_alerts(self, limit: int, now: datetime, hold_seconds: float = 60.0) -> tuple[Notice, ...]:
        """Up to `limit` notices that are due, oldest first. They are due again after `hold_seconds` unless settled,
        so nobody else sends them meanwhile, and somebody else does if the taker dies."""
        ...

    async def settle_alert(
        self, id: str, sent: Sequence[str], retry_at: datetime | None, error: str | None = None
    ) -> None:
        """These channels have it. The rest is tried again at `retry_at`; None: the notice is done with."""
        ...

    async def next_alert_at(self) -> datetime | None:
        """When the next notice is due; None: there is none."""
        ...

    # ── whether there is anything to do ──────────────────────────────────────────────────────────

    async def look_ahead(self, locations: Collection[str]) -> LookAhead:
        """Whether runs wait, the schedules that are on, when the next notice is due as by `next_alert_at`, and when the
        next of these locations is as by `next_location_at`. Reads only, in as few requests as the store can: it is all
        that a tick with nothing to do asks."""
        ...

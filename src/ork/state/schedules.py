"""The state store for workflows, their schedules, code locations, and notices.

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
    """Creates runs for schedules that are due."""

    async def due_schedules(self, now: datetime) -> tuple[ScheduleEntry, ...]:
        """Enabled schedules that are due at `now` or not planned yet, by name."""
        ...

    async def next_fire_at(self, after: datetime) -> datetime | None:
        """The earliest planned time after `after` of all enabled schedules."""
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
        """Create the runs as `create_runs` does, set the schedule's next time to `next_fire`, and add a notice if times
        were `missed`: all or nothing.

        False, and nothing is written, if the schedule is disabled or its next time is not `expected`, because it was
        fired by another caller or changed. So only one of several callers with the same expected time succeeds.
        """
        ...


class ScheduleStore(ScheduleFiring, Protocol):
    """Workflows, their schedules, code locations and notices."""

    # ── workflows ────────────────────────────────────────────────────────────────────────────────

    async def save_version(
        self, version: Version, *, origin: str | None, now: datetime, next_fire: datetime | None = None
    ) -> bool:
        """Store the version durably and make it current for new runs of its workflow. True if the version is new.

        Saving an identical version again only makes it current and enables the workflow. A schedule that is new,
        changed or was disabled fires next at `next_fire` (None: not planned yet); an unchanged one keeps its time, so
        that no due time is lost by deploying again. RefusedError if the workflow belongs to a location that `origin`
        does not name.
        """
        ...

    async def add_version(self, version: Version, now: datetime) -> bool:
        """Store the version durably for runs that name it. True if it is new.

        The workflow's current version and schedule stay as they are. Adding an identical version again changes nothing.
        """
        ...

    async def set_enabled(self, workflow: str, enabled: bool, *, next_fire: datetime | None = None) -> bool:
        """Enable or disable a workflow. A disabled workflow keeps its history and gets no new scheduled runs. False if
        unknown.

        A schedule that was disabled fires next at `next_fire` (None: not planned yet); one that was enabled keeps its
        time.
        """
        ...

    async def delete_workflow(self, workflow: str) -> bool:
        """Delete the workflow, so that its name is free again; its runs and versions stay. False if unknown.
        RefusedError while one of its runs has not ended or if it belongs to a location."""
        ...

    # ── code locations ───────────────────────────────────────────────────────────────────────────

    async def set_locations(self, sources: Mapping[str, str], now: datetime) -> None:
        """Replace all locations. One that is new or has a new source is due at once and counts as never scanned; the
        others stay unchanged.

        Workflows of a removed location are disabled, and can be deployed from anywhere from then on.
        """
        ...

    async def ask_refresh(self, location: str, now: datetime) -> bool:
        """Make the location due now and wake schedulers. A failed scan counts as none, so that it is repeated even
        without a change. False if unknown."""
        ...

    async def take_location(self, names: Collection[str], now: datetime, hold_seconds: float) -> LocationEntry | None:
        """Take one of these locations that is due or was asked for, the one that waited longest; None if there is none.
        No other caller gets it until it is settled or `hold_seconds` have passed, so only one of several callers scans
        it."""
        ...

    async def keep_location(self, held: LocationEntry, now: datetime, hold_seconds: float) -> LocationEntry | None:
        """Hold the location for `hold_seconds` from now; with 0, others may take it. None if this caller no longer
        holds it."""
        ...

    async def settle_location(self, held: LocationEntry, scan: LocationScan, due_at: datetime, now: datetime) -> bool:
        """Store the result of a scan; the location is due again at `due_at`. False, and nothing is written, if this
        caller no longer holds the location: the hold expired and another caller took it, or its source changed."""
        ...

    async def next_location_at(self, names: Collection[str]) -> datetime | None:
        """When `take_location` can return one of these; may be in the past. None if none of them exists."""
        ...

    # ── notices to people ────────────────────────────────────────────────────────────────────────

    async def take_alerts(self, limit: int, now: datetime, hold_seconds: float = 60.0) -> tuple[Notice, ...]:
        """Take up to `limit` notices that are due, oldest first. They are due again after `hold_seconds` unless
        settled: no other caller sends them meanwhile, and another one does if this caller dies."""
        ...

    async def settle_alert(
        self, id: str, sent: Sequence[str], retry_at: datetime | None, error: str | None = None
    ) -> None:
        """Record the targets that the notice was sent to. The others are tried again at `retry_at`; None finishes the
        notice."""
        ...

    async def next_alert_at(self) -> datetime | None:
        """When the next notice is due; None if there is none."""
        ...

    # ── whether there is anything to do ──────────────────────────────────────────────────────────

    async def look_ahead(self, locations: Collection[str]) -> LookAhead:
        """Whether runs are waiting, the enabled schedules, when the next notice is due (as `next_alert_at`), and when
        the next of these locations is due (as `next_location_at`). Reads only, in as few requests as possible: these
        are the only reads of a tick with nothing to do."""
        ...

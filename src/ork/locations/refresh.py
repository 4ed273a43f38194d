"""Looks into code locations when they are due and takes over what is found. Never in the way of a scheduler's step.

The image or folder is the source of truth: all of what it holds is taken over, or nothing is and the last good version
goes on. Of several schedulers one looks.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from ork.core.cron import first_fire
from ork.definition.problems import render_concise
from ork.errors import DocumentError, OrkError, StoreError
from ork.locations.document import Found, Parsed, read_document
from ork.locations.place import LookError, Place
from ork.model.location import Location, LocationEntry, LocationScan, location_of, origin_of
from ork.model.workflow import Schedule, WorkflowEntry
from ork.state.schedules import ScheduleStore
from ork.status.schedules import deploy, set_schedule_enabled
from ork.telemetry import Telemetry, TelemetryEvent

HOLD_SECONDS = 60.0
STORE_RETRY_SECONDS = 5.0
OTHERS_SECONDS = 1.0
NEVER = datetime(9999, 1, 1, tzinfo=UTC)
_SHOWN_PROBLEMS = 20

PlaceOf = Callable[[Location], Place]


def _now() -> datetime:
    return datetime.now(UTC)


class Refresher:
    """`on_change` is called when workflows have been written through our own store handle, which tells only others."""

    def __init__(
        self,
        store: ScheduleStore,
        locations: Mapping[str, Location],
        place_of: PlaceOf,
        telemetry: Telemetry,
        *,
        mistakes: Sequence[str] = (),
        on_change: Callable[[], None] = lambda: None,
        now: Callable[[], datetime] = _now,
    ) -> None:
        self._store = store
        self._locations = locations
        self._place_of = place_of
        self._telemetry = telemetry
        self._mistakes = mistakes  # in locations.yaml; reported once
        self._on_change = on_change
        self._now = now
        self._wake = asyncio.Event()

    def look_soon(self) -> None:
        """Somebody may have asked for a scan."""
        self._wake.set()

    async def run(self) -> None:
        """Until cancelled. Sleeps until a location is due."""
        while True:
            self._wake.clear()
            try:
                due = await self.refresh_due()
            except StoreError:
                due = self._now() + timedelta(seconds=STORE_RETRY_SECONDS)
            await self._wait_until(due)
            await asyncio.sleep(OTHERS_SECONDS)  # whatever else happens in the store wakes us too

    async def refresh_due(self) -> datetime | None:
        """Looks into all that are due, one after the other. Returns when one is due again."""
        while self._mistakes:
            first, *self._mistakes = self._mistakes
            self._telemetry.emit(TelemetryEvent.LOCATION_FAILED, why=first)
        while (held := await self._store.take_location(self._locations, self._now(), HOLD_SECONDS)) is not None:
            await self._refresh(held)
        return await self._store.next_location_at(self._locations)

    async def _refresh(self, held: LocationEntry) -> None:
        location = self._locations[held.name]
        lease = _Lease(self._store, held, self._now)
        keeping = asyncio.create_task(lease.keep())
        scan: LocationScan | None = None
        try:
            scan = await self._scan(location, held)
        finally:
            lease.end()
            await keeping  # what is on its way must arrive first
            if scan is None:  # we are stopped: whoever comes next may scan at once
                await self._store.keep_location(lease.held, self._now(), 0.0)
        due = first_fire(Schedule(location.refresh), location.name, self._now()) or NEVER
        if await self._store.settle_location(lease.held, scan, due, self._now()):
            self._tell(held, scan)

    async def _scan(self, location: Location, held: LocationEntry) -> LocationScan:
        """One bad location never stops the loop or its neighbours, whatever is wrong with it."""
        digest: str | None = None
        try:
            place = self._place_of(location)
            digest = await place.digest()
            if not needs_look(held, digest):
                return LocationScan(digest, digest) if digest == held.digest else _as_before(held)
            await self._take_over(location.name, held, place, digest)
            return LocationScan(digest, digest)
        except LookError as error:
            seen = digest if error.is_lasting else held.seen
            return LocationScan(seen, None, error.code, error.message, error.output)
        except StoreError:
            raise
        except OrkError as error:
            return LocationScan(held.seen, None, error.code, error.message)
        except Exception as error:
            return LocationScan(held.seen, None, OrkError.code, f"looking failed: {error!r}")

    async def _take_over(self, name: str, held: LocationEntry, place: Place, digest: str) -> None:
        answer = await place.parse(digest)
        try:
            # In a thread: a large document must not hold up the scheduler beside us.
            parsed = await asyncio.to_thread(read_document, answer.document)
        except DocumentError as error:
            shown = answer.said or answer.document[:2000].decode("utf-8", "replace")
            raise LookError(f"ork-parse answered {error.message}", output=shown, is_lasting=True) from None
        _refuse_problems(parsed)
        known = {entry.name: entry for entry in await self._store.list_workflows()}
        await self._refuse_others(name, parsed, known)
        versions = [place.version(found, digest) for found in parsed.found]
        for version in versions:
            before = known.get(version.workflow.name)
            await deploy(self._store, version, origin=origin_of(name, digest), now=self._now())
            if was_switched_off(before, held):
                await self._store.set_enabled(version.workflow.name, False)
        for entry in vanished(name, parsed.found, known):
            await set_schedule_enabled(self._store, entry.name, False, self._now())
        self._on_change()

    async def _refuse_others(self, name: str, parsed: Parsed, known: Mapping[str, WorkflowEntry]) -> None:
        """Before anything is written: a name that another location has cannot be had."""
        locations = {entry.name for entry in await self._store.list_locations()}
        for found in parsed.found:
            entry = known.get(found.workflow.name)
            owner = None if entry is None else location_of(entry.origin)
            if owner is not None and owner != name and owner in locations:
                raise LookError(f"workflow {found.workflow.name} belongs to location {owner} already", code="ORK710")

    def _tell(self, held: LocationEntry, scan: LocationScan) -> None:
        """Only what is news."""
        if scan.error is not None:
            if (scan.code, scan.error, scan.seen) != (held.code, held.error, held.seen):
                self._telemetry.emit(
                    TelemetryEvent.LOCATION_FAILED, location=held.name, error=scan.error, digest=scan.seen
                )
        elif scan.digest != held.digest or held.error is not None:
            self._telemetry.emit(TelemetryEvent.LOCATION_REFRESHED, location=held.name, digest=scan.digest)

    async def _wait_until(self, due: datetime | None) -> None:
        seconds = None if due is None else max(0.0, (due - self._now()).total_seconds())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()


class _Lease:
    """A location that is ours for as long as the scan takes, and free a minute after we died."""

    def __init__(self, store: ScheduleStore, held: LocationEntry, now: Callable[[], datetime]) -> None:
        self.held = held
        self._store = store
        self._now = now
        self._is_over = asyncio.Event()

    def end(self) -> None:
        self._is_over.set()

    async def keep(self) -> None:
        """Until it ends, or is lost: then what comes of our scan is refused."""
        while not self._is_over.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(HOLD_SECONDS / 3):
                    await self._is_over.wait()
                return
            with contextlib.suppress(StoreError):
                kept = await self._store.keep_location(self.held, self._now(), HOLD_SECONDS)
                if kept is None:
                    return
                self.held = kept


def needs_look(held: LocationEntry, digest: str) -> bool:
    """Something new is there, or what is there could not be looked into for a reason that may have gone."""
    if digest == held.digest:
        return False
    return digest != held.seen or held.code not in (None, "ORK707", "ORK708")


def was_switched_off(entry: WorkflowEntry | None, held: LocationEntry) -> bool:
    """By a person: it was in the last good digest, and yet it is disabled. One that had vanished comes back enabled."""
    return (
        entry is not None
        and not entry.enabled
        and held.digest is not None
        and entry.origin == origin_of(held.name, held.digest)
    )


def vanished(name: str, found: tuple[Found, ...], known: Mapping[str, WorkflowEntry]) -> list[WorkflowEntry]:
    """Workflows of the location that are not in it any more."""
    there = {each.workflow.name for each in found}
    ours = [entry for entry in known.values() if location_of(entry.origin) == name]
    return [entry for entry in ours if entry.enabled and entry.name not in there]


def _refuse_problems(parsed: Parsed) -> None:
    if not parsed.problems:
        return
    first, rest = parsed.problems[0], len(parsed.problems) - 1
    more = f" (and {rest:,} more)" if rest else ""
    shown = "\n".join(render_concise(problem) for problem in parsed.problems[:_SHOWN_PROBLEMS])
    raise LookError(f"{render_concise(first)}{more}", code="ORK708", output=shown, is_lasting=True)


def _as_before(held: LocationEntry) -> LocationScan:
    return LocationScan(held.seen, None, held.code, held.error, held.output)

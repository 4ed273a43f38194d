"""Scans code locations when they are due and deploys their workflows. Runs beside the scheduler's steps.

The image or folder is the source of truth: either all its workflows are deployed, or none and the last good version
stays in use. Only one scheduler scans a location at a time.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from ork.core.cron import first_fire
from ork.definition.problems import render_concise
from ork.errors import DocumentError, OrkError, StoreError
from ork.locations.document import FoundWorkflow, ParsedDocument, read_document
from ork.locations.source import ScanError, WorkflowSource
from ork.model.location import Location, LocationEntry, LocationScan, location_of, origin_of
from ork.model.workflow import Schedule, Version, WorkflowEntry
from ork.state.schedules import ScheduleStore
from ork.status.schedules import deploy, set_schedule_enabled
from ork.telemetry import Telemetry, TelemetryEvent

HOLD_SECONDS = 60.0
STORE_RETRY_SECONDS = 5.0
OTHERS_SECONDS = 1.0
NEVER = datetime(9999, 1, 1, tzinfo=UTC)
_SHOWN_PROBLEMS = 20

SourceOf = Callable[[Location], WorkflowSource]


def _now() -> datetime:
    return datetime.now(UTC)


class Refresher:
    """`on_change` is called after workflows were written: the store notifies only other processes."""

    def __init__(
        self,
        store: ScheduleStore,
        locations: Mapping[str, Location],
        source_of: SourceOf,
        telemetry: Telemetry,
        *,
        mistakes: Sequence[str] = (),
        on_change: Callable[[], None] = lambda: None,
        now: Callable[[], datetime] = _now,
    ) -> None:
        self._store = store
        self._locations = locations
        self._source_of = source_of
        self._telemetry = telemetry
        self._mistakes = mistakes  # in locations.yaml; reported once
        self._on_change = on_change
        self._now = now
        self._wake = asyncio.Event()

    def wake(self) -> None:
        """A scan may have been requested."""
        self._wake.set()

    async def run(self) -> None:
        """Run until cancelled. Sleeps until a location is due."""
        while True:
            self._wake.clear()
            try:
                due = await self.refresh_due()
            except StoreError:
                due = self._now() + timedelta(seconds=STORE_RETRY_SECONDS)
            await self._wait_until(due)
            await asyncio.sleep(OTHERS_SECONDS)  # limits how often other changes of the store wake it

    async def refresh_due(self) -> datetime | None:
        """Scan all locations that are due, one after the other. Returns when the next one is due."""
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
            await keeping  # let a pending renewal finish first
            if scan is None:  # stopped: release it, so that another scheduler can scan at once
                await self._store.keep_location(lease.held, self._now(), 0.0)
        due = first_fire(Schedule(location.refresh), location.name, self._now()) or NEVER
        if await self._store.settle_location(lease.held, scan, due, self._now()):
            self._emit_change(held, scan)

    async def _scan(self, location: Location, held: LocationEntry) -> LocationScan:
        """Scan one location. An error of any kind affects only this location."""
        digest: str | None = None
        try:
            source = self._source_of(location)
            digest = await source.digest()
            if not needs_scan(held, digest):
                return LocationScan(digest, digest) if digest == held.digest else _unchanged(held)
            await self._deploy_all(location.name, held, source, digest)
            return LocationScan(digest, digest)
        except ScanError as error:
            seen = digest if error.is_lasting else held.seen
            return LocationScan(seen, None, error.code, error.message, error.output)
        except StoreError:
            raise
        except OrkError as error:
            return LocationScan(held.seen, None, error.code, error.message)
        except Exception as error:
            return LocationScan(held.seen, None, OrkError.code, f"scan failed: {error!r}")

    async def _deploy_all(self, name: str, held: LocationEntry, source: WorkflowSource, digest: str) -> None:
        answer = await source.parse(digest)
        try:
            # In a thread: a large document must not delay the scheduler.
            parsed = await asyncio.to_thread(read_document, answer.document)
        except DocumentError as error:
            shown = answer.stderr or answer.document[:2000].decode("utf-8", "replace")
            raise ScanError(f"invalid output of ork-parse: {error.message}", output=shown, is_lasting=True) from None
        _raise_problems(parsed)
        known = {entry.name: entry for entry in await self._store.list_workflows()}
        await self._check_owners(name, parsed, known)
        versions = await asyncio.to_thread(_versions, source, parsed, digest)
        for version in versions:
            before = known.get(version.workflow.name)
            await deploy(self._store, version, origin=origin_of(name, digest), now=self._now())
            if was_disabled_by_person(before, held):
                await self._store.set_enabled(version.workflow.name, False)
        for entry in removed_workflows(name, parsed.found, known):
            await set_schedule_enabled(self._store, entry.name, False, self._now())
        self._on_change()

    async def _check_owners(self, name: str, parsed: ParsedDocument, known: Mapping[str, WorkflowEntry]) -> None:
        """Checked before anything is written: a workflow name cannot be taken from another location."""
        locations = {entry.name for entry in await self._store.list_locations()}
        for found in parsed.found:
            entry = known.get(found.workflow.name)
            owner = None if entry is None else location_of(entry.origin)
            if owner is not None and owner != name and owner in locations:
                raise ScanError(f"workflow {found.workflow.name} already belongs to location {owner}", code="ORK710")

    def _emit_change(self, held: LocationEntry, scan: LocationScan) -> None:
        """Emit an event if the result changed."""
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
    """The lease of a location during a scan. It expires a minute after its owner died."""

    def __init__(self, store: ScheduleStore, held: LocationEntry, now: Callable[[], datetime]) -> None:
        self.held = held
        self._store = store
        self._now = now
        self._is_over = asyncio.Event()

    def end(self) -> None:
        self._is_over.set()

    async def keep(self) -> None:
        """Renew until the end of the scan, or until the lease is lost: then the store rejects the result."""
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


def needs_scan(held: LocationEntry, digest: str) -> bool:
    """True if there is new content, or the last scan failed for a reason that may be gone."""
    if digest == held.digest:
        return False
    return digest != held.seen or held.code not in (None, "ORK707", "ORK708")


def was_disabled_by_person(entry: WorkflowEntry | None, held: LocationEntry) -> bool:
    """True if a person disabled it: it was in the last good digest and is disabled. One that had vanished is enabled
    again."""
    return (
        entry is not None
        and not entry.enabled
        and held.digest is not None
        and entry.origin == origin_of(held.name, held.digest)
    )


def removed_workflows(
    name: str, found: tuple[FoundWorkflow, ...], known: Mapping[str, WorkflowEntry]
) -> list[WorkflowEntry]:
    """Workflows of the location that no longer exist in it."""
    present = {each.workflow.name for each in found}
    of_location = [entry for entry in known.values() if location_of(entry.origin) == name]
    return [entry for entry in of_location if entry.enabled and entry.name not in present]


def _raise_problems(parsed: ParsedDocument) -> None:
    if not parsed.problems:
        return
    first, rest = parsed.problems[0], len(parsed.problems) - 1
    more = f" (and {rest:,} more)" if rest else ""
    shown = "\n".join(render_concise(problem) for problem in parsed.problems[:_SHOWN_PROBLEMS])
    raise ScanError(f"{render_concise(first)}{more}", code="ORK708", output=shown, is_lasting=True)


def _unchanged(held: LocationEntry) -> LocationScan:
    return LocationScan(held.seen, None, held.code, held.error, held.output)


def _versions(source: WorkflowSource, parsed: ParsedDocument, digest: str) -> list[Version]:
    """In a thread, because a folder reads its code."""
    return [source.version(found, digest) for found in parsed.found]

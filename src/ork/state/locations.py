"""The store's door for code locations. Every sentence below is a test in tests/conformance."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Protocol

from ork.model.location import LocationEntry, LocationScan


class LocationVerbs(Protocol):
    # ── code locations ───────────────────────────────────────────────────────────────────────────

    async def set_locations(self, sources: Mapping[str, str], now: datetime) -> None:
        """These locations are known, and no others. One that is new or has another source than before is due at once,
        and nothing has been seen of it yet; the others stay as they are.

        Workflows of a location that goes are disabled, and anybody may deploy them from then on.
        """
        ...

    async def list_locations(self) -> tuple[LocationEntry, ...]:
        """By name."""
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

"""Code locations: images and folders that workflows come from, and what became of looking into them."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from ork.model.record import Record

EVERY_FIVE_MINUTES = "*/5 * * * *"
_ORIGIN = "location:"


class Lookup(StrEnum):
    """Who is asked which image a name stands for."""

    ALWAYS = "always"  # the registry
    NEVER = "never"  # the engine: only images that were built or pulled there


class Location(Record):
    """As written in locations.yaml. Exactly one of `image` and `path` (absolute) is set."""

    name: str
    image: str | None = None
    path: str | None = None
    refresh: str = EVERY_FIVE_MINUTES
    pull: Lookup = Lookup.ALWAYS

    @property
    def source(self) -> str:
        return self.image or self.path or ""


class LocationEntry(Record):
    """A location in the store. `digest` is what its workflows come from; `seen` what was looked into last, be it good
    or not: if not, `code`, `error` and `output` say why."""

    name: str
    source: str
    due_at: datetime
    held_until: datetime | None = None  # somebody looks into it
    digest: str | None = None
    seen: str | None = None
    looked_at: datetime | None = None
    changed_at: datetime | None = None
    code: str | None = None
    error: str | None = None
    output: str | None = None


class Look(Record):
    """What a look into a location came to. Without a `digest` the one known before stays."""

    seen: str | None
    digest: str | None = None
    code: str | None = None
    error: str | None = None
    output: str | None = None


def origin_of(location: str, digest: str) -> str:
    """What the workflows of a location say of where they come from."""
    return f"{_ORIGIN}{location}@{digest}"


def location_of(origin: str | None) -> str | None:
    """The location an origin names; None where it is none's."""
    if origin is None or not origin.startswith(_ORIGIN):
        return None
    return origin[len(_ORIGIN) :].partition("@")[0]

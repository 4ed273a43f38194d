"""Code locations: images and folders that contain workflows, and the result of reading them."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from ork.model.record import Record

EVERY_FIVE_MINUTES = "*/5 * * * *"
_ORIGIN = "location:"


class Lookup(StrEnum):
    """Where an image name is resolved to a digest."""

    ALWAYS = "always"  # at the registry
    NEVER = "never"  # at the engine: only images that were built or pulled there


class Location(Record):
    """One entry of locations.yaml. Exactly one of `image` and `path` (absolute) is set."""

    name: str
    image: str | None = None
    path: str | None = None
    refresh: str = EVERY_FIVE_MINUTES
    pull: Lookup = Lookup.ALWAYS

    @property
    def source(self) -> str:
        return self.image or self.path or ""


class LocationEntry(Record):
    """A location in the store. `digest` is the content its workflows come from; `seen` is the content read last. If
    that failed, `code`, `error` and `output` say why."""

    name: str
    source: str
    due_at: datetime
    held_until: datetime | None = None  # lease of the scheduler that is reading it
    digest: str | None = None
    seen: str | None = None
    looked_at: datetime | None = None
    changed_at: datetime | None = None
    code: str | None = None
    error: str | None = None
    output: str | None = None


class LocationScan(Record):
    """The result of reading a location. Without a `digest` the previous one is kept."""

    seen: str | None
    digest: str | None = None
    code: str | None = None
    error: str | None = None
    output: str | None = None


def origin_of(location: str, digest: str) -> str:
    """The `origin` of workflows from this location."""
    return f"{_ORIGIN}{location}@{digest}"


def location_of(origin: str | None) -> str | None:
    """The location named by an origin; None if the workflow does not come from a location."""
    if origin is None or not origin.startswith(_ORIGIN):
        return None
    return origin[len(_ORIGIN) :].partition("@")[0]


PARSE = "parse"  # the task, and the beginning of the run, of an attempt that reads an image
_PARSE_RUN_SIZE = len(PARSE) + 12


def is_parse(run: str, task: str) -> bool:
    """True for an attempt that reads an image. It is in no store; the ids of all other runs are shorter."""
    return task == PARSE and run.startswith(PARSE) and len(run) == _PARSE_RUN_SIZE

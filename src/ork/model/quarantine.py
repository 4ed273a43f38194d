"""Stored items that cannot be decoded or processed, and were quarantined."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from ork.model.ids import RunId
from ork.model.record import Record
from ork.model.task import Attempt

SET_ASIDE = "set aside: "
"""Prefix of the note of a quarantined run."""


class ItemKind(StrEnum):
    """Kind of a quarantined item. The value is shown to people."""

    RUN = "run"
    COMMAND = "command"
    VERSION = "version"
    WORKFLOW = "workflow"
    SCHEDULE = "schedule"
    LOCATION = "location"
    TOKEN = "token"
    NOTICE = "alert"


class Quarantined(Record):
    """One quarantined item. `since` is None for items that are detected on each read."""

    kind: ItemKind
    id: str
    reason: str
    since: datetime | None = None


class QuarantinedRun(Record):
    """A run that was quarantined, with those of its active attempts that can be decoded.

    `is_cancelled`: a cancel request was pending, so the run ended as cancelled.
    """

    run: RunId
    workflow: str
    reason: str
    is_cancelled: bool = False
    attempts: tuple[Attempt, ...] = ()

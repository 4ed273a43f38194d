"""Stored items that cannot be decoded or worked with, and have been set aside."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from ork.model.ids import RunId
from ork.model.record import Record
from ork.model.task import Attempt

SET_ASIDE = "set aside: "
"""What the note of a run that was set aside begins with."""


class ItemKind(StrEnum):
    """What was set aside. The value is the word that people read."""

    RUN = "run"
    COMMAND = "command"
    VERSION = "version"
    WORKFLOW = "workflow"
    SCHEDULE = "schedule"
    LOCATION = "location"
    TOKEN = "token"
    NOTICE = "alert"


class Quarantined(Record):
    """One item that was set aside. `since` is unknown for items that are found each time they are read."""

    kind: ItemKind
    id: str
    reason: str
    since: datetime | None = None


class SetAside(Record):
    """A run that was set aside, and those of its active attempts that can be read.

    `is_cancelled`: a cancel request was pending, so the run has ended as cancelled.
    """

    run: RunId
    workflow: str
    reason: str
    is_cancelled: bool = False
    attempts: tuple[Attempt, ...] = ()

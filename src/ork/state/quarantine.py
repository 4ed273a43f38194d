"""Messages about quarantined items, the same for every store."""

from __future__ import annotations

from collections.abc import Iterable

from ork.model.access import Token
from ork.model.location import LocationEntry
from ork.model.quarantine import SET_ASIDE, ItemKind, Quarantined
from ork.model.workflow import WorkflowEntry
from ork.state.lenient import UNREADABLE
from ork.state.records import ScheduleEntry

_TRY_AGAIN = "repair it, then `ork resume` tries again; `ork cancel` ends it"


def note_of(reason: str, is_cancelled: bool) -> str:
    """The note on a quarantined run."""
    if is_cancelled:
        return f"cancelled while it was set aside: {reason}"
    return f"{SET_ASIDE}{reason}; {_TRY_AGAIN}"


def missing_version(version: str) -> str:
    return f"version {version} is missing from the store; `ork deploy` of the same workflow brings it back"


def broken_version(version: str, problem: Exception) -> str:
    why = str(problem) or type(problem).__name__
    return f"version {version} cannot be read ({why}); `ork deploy` of the same workflow repairs it"


def damaged_items(
    workflows: Iterable[WorkflowEntry],
    schedules: Iterable[ScheduleEntry],
    locations: Iterable[LocationEntry],
    tokens: Iterable[Token],
) -> list[Quarantined]:
    """Items that are marked as unreadable."""
    damaged_schedules = {entry.workflow for entry in schedules if entry.unreadable}
    found = [
        Quarantined(ItemKind.WORKFLOW, entry.name, entry.unreadable)
        for entry in workflows
        if entry.unreadable and entry.name not in damaged_schedules
    ]
    found += [Quarantined(ItemKind.SCHEDULE, each.workflow, each.unreadable) for each in schedules if each.unreadable]
    found += [
        Quarantined(ItemKind.LOCATION, entry.name, entry.error or "its row cannot be decoded")
        for entry in locations
        if entry.code == UNREADABLE
    ]
    found += [Quarantined(ItemKind.TOKEN, token.id, token.unreadable) for token in tokens if token.unreadable]
    return found

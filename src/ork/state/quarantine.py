"""What is set aside: the verbs of the state store for it, and the words, which are the same in every store."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Protocol

from ork.model.access import Token
from ork.model.ids import RunId, SchedulerId
from ork.model.location import LocationEntry
from ork.model.quarantine import SET_ASIDE, ItemKind, Quarantined, QuarantinedRun
from ork.model.workflow import WorkflowEntry
from ork.state.lenient import UNREADABLE
from ork.state.schedules import ScheduleEntry

_TRY_AGAIN = "repair it, then `ork resume` tries again; `ork cancel` ends it"


class QuarantineVerbs(Protocol):
    """A part of `ork.state.store.StateStore`; every sentence is a test in tests/conformance."""

    async def set_aside(
        self, scheduler: SchedulerId, run: RunId, epoch: int, reason: str, now: datetime
    ) -> QuarantinedRun | None:
        """The run has no owner and nobody claims it until a person asks something of it. None: the epoch is stale.

        It is paused with the reason as its note (a final run keeps its status) and listed by `list_quarantined`. If a
        cancel request is pending it is cancelled instead, with its tasks and attempts. Its commands are done with. It takes
        neither slots nor a place below its workflow's `max_active_runs`.
        """
        ...

    async def list_quarantined(self, limit: int = 100) -> tuple[Quarantined, ...]:
        """What has been set aside and why: by kind, then by id. `submit_command` and pruning take a run off this list.
        Workflows, schedules, locations and tokens are on it for as long as their rows are damaged."""
        ...


def note_of(reason: str, is_cancelled: bool) -> str:
    """The note on a run that is set aside."""
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
    """Those that say of themselves that they cannot be decoded."""
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

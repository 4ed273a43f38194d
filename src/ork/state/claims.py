"""What a scheduler gets by a claim, and which runs it may claim: workflows limit how many of theirs are active at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from ork.model.quarantine import QuarantinedRun
from ork.model.record import Record
from ork.model.run import Run, RunCommand
from ork.model.task import Attempt, Heartbeat, Task
from ork.model.workflow import Version

Claimable: TypeAlias = "tuple[str, str, bool, bool]"
"""A run, its workflow, whether it is pending, and whether it is to be cancelled."""


class ClaimedRun(Record):
    """All a new owner needs to go on with a run: `attempts` holds the current attempt of each active task, `heartbeats`
    what was noted of them, with ages by the store's clock."""

    run: Run
    epoch: int
    version: Version
    tasks: tuple[Task, ...]
    attempts: tuple[Attempt, ...]
    heartbeats: tuple[Heartbeat, ...] = ()


class Claim(Record):
    """What a scheduler may now work on, what people asked of the runs it owns (new and old), and runs that it would have
    got, but that cannot be decoded."""

    runs: tuple[ClaimedRun, ...] = ()
    commands: tuple[RunCommand, ...] = ()
    set_aside: tuple[QuarantinedRun, ...] = ()


def that_fit(found: Iterable[Claimable], free: dict[str, int]) -> list[str]:
    """Lowers `free`, the room that is left in workflows with a limit, by the pending ones among them; all others have
    been counted already. One that is to be cancelled needs no room."""
    fitting = []
    for run, workflow, is_pending, is_to_be_cancelled in found:
        if is_pending and workflow in free:
            if free[workflow] <= 0 and not is_to_be_cancelled:
                continue
            free[workflow] -= 1
        fitting.append(run)
    return fitting

"""Mutants of what is promised for schedulers that a person pauses, drains and resumes."""

from __future__ import annotations

from typing import Any

from ork.scheduler import fire, lease
from ork.scheduler import runs as owned_runs
from tests.simulation.mutants.mutations import Mutant, always


def read_once(original: Any) -> Any:
    async def read_controls(self: Any) -> None:
        if self.control is None:
            await original(self)

    return read_controls


def read_only_at_the_start(original: Any) -> Any:
    async def read_controls(self: Any) -> None:
        if not self.has_claimed and self._peers_checked_at is None:
            await original(self)

    return read_controls


def claim_anyway(original: Any) -> Any:
    async def claim(self: Any, room: int, now: Any) -> Any:
        control, self.control = self.control, None
        try:
            return await original(self, room, now)
        finally:
            self.control = control

    return claim


CONTROL_MUTANTS = (
    Mutant(
        "control-not-obeyed",
        "a paused scheduler goes on launching",
        ((owned_runs.OwnedRuns, "hold_launches", always(None)),),
    ),
    Mutant(
        "control-not-noticed",
        "only a scheduler that starts reads its controls",
        ((lease.SchedulerLease, "_read_controls", read_only_at_the_start),),
    ),
    Mutant("resume-not-noticed", "a pause never ends", ((lease.SchedulerLease, "_read_controls", read_once),)),
    Mutant(
        "drained-takes-over", "a scheduler that drains claims runs", ((lease.SchedulerLease, "claim", claim_anyway),)
    ),
    Mutant("paused-fires", "a paused installation fires its schedules", ((fire.Firing, "hold", always(None)),)),
)

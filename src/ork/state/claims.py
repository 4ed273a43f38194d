"""Which runs a scheduler may claim: workflows limit how many of theirs are active at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

Claimable: TypeAlias = "tuple[str, str, bool, bool]"
"""A run, its workflow, whether it is pending, and whether it is to be cancelled."""


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

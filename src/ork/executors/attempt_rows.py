"""How executors look up the row of an attempt that a label on a platform names, to remove what another scheduler left."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from ork.model.task import Attempt

AttemptOf: TypeAlias = Callable[[str], Awaitable[Attempt | None]]


async def unknown_attempt(_attempt: str) -> Attempt | None:
    """For an executor without a state store."""
    return None

"""The wait between two steps of a scheduler on virtual time."""

from __future__ import annotations

from datetime import datetime

from ork.virtual_time.clock import FakeClock
from ork.virtual_time.kernel import Kernel, Signal

LEAST_STEP_SECONDS = 0.001  # a step takes this long, so that a scheduler that never rests does not stop the time


async def rest(kernel: Kernel, wakeup: Signal, clock: FakeClock, due: datetime | None) -> None:
    """Wait until the step that is `due` (None: none is planned), or until an event."""
    seconds = None if due is None else (due - clock.now()).total_seconds()
    await kernel.pause(LEAST_STEP_SECONDS)
    await wakeup.wait(None if seconds is None else max(0.0, seconds - LEAST_STEP_SECONDS))

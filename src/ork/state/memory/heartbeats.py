"""What is kept of workers' heartbeats, in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ork.model.task import Heartbeat

if TYPE_CHECKING:
    from ork.state.memory.rows import Shared


class HeartbeatsInMemory:
    """A part of the memory store."""

    _clock: Callable[[], float]

    def _used(self) -> Shared:
        raise AssertionError("the store says what it uses")

    async def note_heartbeats(self, heartbeats: Sequence[Heartbeat]) -> None:
        runs = self._used().runs
        for heartbeat in heartbeats:
            if heartbeat.attempt.run in runs:
                runs[heartbeat.attempt.run].note(heartbeat, self._clock())

"""Ends that nobody waits for are told of together: a scheduler has as much to do for one as for several."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

BATCH_SECONDS = 0.002
MANY = 16  # nobody waits for more than so many


class EndBatch:
    """`tell` is called for each attempt, with its last words if they are at hand: now or soon, as is asked."""

    def __init__(self, tell: Callable[[str, bytes | None], None]) -> None:
        self._tell = tell
        self._heard: deque[tuple[str, bytes | None]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def add(self, attempt: str, status: bytes | None) -> None:
        self._heard.append((attempt, status))

    def flush_soon(self) -> None:
        """All that was heard, and what is heard until then."""
        if self._heard and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(BATCH_SECONDS, self.flush)

    @property
    def are_many(self) -> bool:
        return len(self._heard) >= MANY

    def flush(self) -> None:
        """All that was heard, in its order."""
        self.cancel_timer()
        while self._heard:
            self._tell(*self._heard.popleft())

    def cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

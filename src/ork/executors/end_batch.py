"""Batches reports of ended attempts: a scheduler step costs as much for one end as for several."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

BATCH_SECONDS = 0.002
MANY = 16  # a batch of this size is reported at once


class EndBatch:
    """Calls `report` for each ended attempt, with its final status if known, on `flush` or soon."""

    def __init__(self, report: Callable[[str, bytes | None], None]) -> None:
        self._report = report
        self._ends: deque[tuple[str, bytes | None]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def add(self, attempt: str, status: bytes | None) -> None:
        self._ends.append((attempt, status))

    def flush_soon(self) -> None:
        """Report all ends after a short delay, including those added until then."""
        if self._ends and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(BATCH_SECONDS, self.flush)

    @property
    def are_many(self) -> bool:
        return len(self._ends) >= MANY

    def flush(self) -> None:
        """Report all ends, in order."""
        self.cancel_timer()
        while self._ends:
            self._report(*self._ends.popleft())

    def cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

"""Parts of a scheduler that currently use a slower path, and why.

A fast path that falls back (a fork server that crashed, a journal replaced by plain files) changes no result, so it
would go unnoticed. Each fallback is counted for the metrics, logged at most every few minutes, and kept while it lasts,
so that the scheduler's row in the store can show it in `ork status` and `ork doctor`.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

LOG_INTERVAL_SECONDS = 300.0
MAX_REASON = 500

FORK_SERVER = "fork server"
WORKER_POOL = "worker pool"
PRELOADING = "preloading"
NEWS_SOCKET = "news socket"
JOURNAL = "journal"
NOTIFICATIONS = "notifications"


class Fallbacks:
    """`log` is called with component and reason when there is something new to log."""

    def __init__(self, log: Callable[[str, str], None], monotonic: Callable[[], float] = time.monotonic) -> None:
        self.counts: Counter[str] = Counter()
        self._log = log
        self._monotonic = monotonic
        self._reasons: dict[str, str] = {}
        self._logged: dict[str, float] = {}

    def note(self, component: str, reason: str) -> None:
        """The component does not use its fast path, this time or from now on."""
        reason = " ".join(reason.split())[:MAX_REASON]
        self.counts[component] += 1
        is_new = self._reasons.get(component) != reason
        self._reasons[component] = reason
        if is_new or self._monotonic() >= self._logged[component] + LOG_INTERVAL_SECONDS:
            self._logged[component] = self._monotonic()
            self._log(component, reason)

    def clear(self, component: str) -> None:
        """The component uses its fast path again."""
        self._reasons.pop(component, None)

    @property
    def reasons(self) -> dict[str, str]:
        """The current reasons by component."""
        return dict(self._reasons)

    @property
    def notes(self) -> tuple[str, ...]:
        """One sentence for each current fallback."""
        return tuple(f"{component}: {reason}" for component, reason in sorted(self._reasons.items()))

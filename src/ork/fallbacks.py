"""Parts of a scheduler that work in a slower way than they should, and why.

A fast path that falls back (a fork server that crashed, a journal that became plain files) changes no result, so nobody
would notice. Each of them is noted here: counted for the metrics, logged (not more often than every few minutes), and
kept as long as it lasts, so that the scheduler's row in the store can show it to `ork status` and `ork doctor`.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

LOG_AGAIN_SECONDS = 300.0
LONGEST_REASON = 500

FORK_SERVER = "fork server"
WORKER_POOL = "worker pool"
NEWS_SOCKET = "news socket"
JOURNAL = "journal"
NOTIFICATIONS = "notifications"


class Fallbacks:
    """`tell` is called with component and reason when there is something new to log."""

    def __init__(self, tell: Callable[[str, str], None], monotonic: Callable[[], float] = time.monotonic) -> None:
        self.counts: Counter[str] = Counter()
        self._tell = tell
        self._monotonic = monotonic
        self._reasons: dict[str, str] = {}
        self._logged: dict[str, float] = {}

    def note(self, component: str, reason: str) -> None:
        """The component does without its fast path, this time or from now on."""
        reason = " ".join(reason.split())[:LONGEST_REASON]
        self.counts[component] += 1
        is_new = self._reasons.get(component) != reason
        self._reasons[component] = reason
        if is_new or self._monotonic() >= self._logged[component] + LOG_AGAIN_SECONDS:
            self._logged[component] = self._monotonic()
            self._tell(component, reason)

    def clear(self, component: str) -> None:
        """It works as it should again."""
        self._reasons.pop(component, None)

    @property
    def reasons(self) -> dict[str, str]:
        """Of those that hold now, by component."""
        return dict(self._reasons)

    @property
    def notes(self) -> tuple[str, ...]:
        """A sentence for each of them."""
        return tuple(f"{component}: {reason}" for component, reason in sorted(self._reasons.items()))

"""Whether a task waited: tasks that never wait gain nothing from more workers than there are processors."""

from __future__ import annotations

import time
from resource import RUSAGE_SELF, getrusage

AT_ONCE_SECONDS = 0.00005


def times_waited() -> int:
    """How often this process gave up the processor to wait for something, as the system counts it."""
    return getrusage(RUSAGE_SELF).ru_nvcsw


class Waits:
    """Waits of a process that makes one call after the other."""

    def __init__(self) -> None:
        self._seen = times_waited()

    def none_since(self, begun: float) -> bool:
        """True if the call since `begun` did not wait. To be asked after every call; very short calls are not looked at."""
        if time.monotonic() - begun < AT_ONCE_SECONDS:
            return True
        before, self._seen = self._seen, times_waited()
        return self._seen == before

    def forget(self) -> None:
        """The waits until now belong to no call."""
        self._seen = times_waited()

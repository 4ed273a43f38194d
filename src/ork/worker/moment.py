"""The first moment of an attempt. Most are over by then and leave nothing: their shim sleeps once, and has nothing to look
after. Any other one is watched from then on.
"""

from __future__ import annotations

import select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ork.worker.signals import Signals


class Moment:
    """Lives as long as the worker, and so does what the system is asked with: from one attempt to the next it stays as it
    is."""

    def __init__(self, signals: Signals) -> None:
        self._wake = signals.wake
        self._watched: tuple[int, ...] = ()
        self._poller = select.poll()
        self._poller.register(self._wake, select.POLLIN)

    def has_ended(self, ends: tuple[int, ...], milliseconds: float) -> bool:
        """Waits until the first of them, or any, can be read; True if it is the first and no other, nor a signal.

        They are looked at in their order: what was written to others before the first one could be read has been seen."""
        if ends != self._watched:
            self._watch(ends)
        ready = self._poller.poll(milliseconds)
        return len(ready) == 1 and ready[0][0] == ends[0]

    def is_silent(self) -> bool:
        """Nothing is to be read."""
        return not self._poller.poll(0)

    def _watch(self, ends: tuple[int, ...]) -> None:
        for descriptor in self._watched:
            if descriptor != self._wake:
                self._poller.unregister(descriptor)
        for descriptor in ends:
            self._poller.register(descriptor, select.POLLIN)
        self._watched = ends

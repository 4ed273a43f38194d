"""Signals as something to poll for: requests to end, and ends of children."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import os


class Signals:
    """From when it is made, SIGTERM is counted instead of ending the process, and `wake` is readable after either."""

    def __init__(self) -> None:
        self.terms = 0
        self.wake, self.ring = os.pipe()
        os.set_blocking(self.wake, False)
        os.set_blocking(self.ring, False)
        _signal.set_wakeup_fd(self.ring, warn_on_full_buffer=False)
        _signal.signal(_signal.SIGTERM, self._on_term)
        # Without a handler the wake-up descriptor stays silent.
        _signal.signal(_signal.SIGCHLD, lambda _number, _frame: None)
        _signal.pthread_sigmask(_signal.SIG_UNBLOCK, (_signal.SIGTERM,))

    def quiet(self) -> None:
        """Takes notice of what came; `wake` is readable again after the next."""
        try:
            os.read(self.wake, 4096)
        except BlockingIOError:
            return

    def _on_term(self, _number: int, _frame: object) -> None:
        self.terms += 1

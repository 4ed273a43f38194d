"""Waiting for something that other processes do."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE_SECONDS = 60.0
LOOK_SECONDS = 0.02


def wait_until(is_so: Callable[[], bool], patience_seconds: float = PATIENCE_SECONDS) -> None:
    """Looks again and again; what never comes is a failure, however slow the machine."""
    end = time.monotonic() + patience_seconds
    while not is_so():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(LOOK_SECONDS)

"""A clock that moves only on request, under the name that tests know."""

from __future__ import annotations

from ork.virtual_time.clock import EPOCH, FakeClock

__all__ = ["EPOCH", "FakeClock"]

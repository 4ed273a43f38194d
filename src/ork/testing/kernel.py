"""Virtual time for coroutines, under the name that tests know."""

from __future__ import annotations

from ork.virtual_time.kernel import Actor, Crashed, Kernel, Killed, Signal

__all__ = ["Actor", "Crashed", "Kernel", "Killed", "Signal"]

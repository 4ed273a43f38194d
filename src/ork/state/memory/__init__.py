"""A store in memory, for tests and for runs that need not outlive their process."""

from __future__ import annotations

from ork.state.memory.store import MemoryStore

__all__ = ["MemoryStore"]

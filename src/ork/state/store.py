"""The state store: one contract in several parts, each named by its users.

- `StateReader` (reading.py): status, API and command line
- `SchedulerStore` (scheduling.py): schedulers; its part `RunRequests` creates runs and accepts commands
- `ScheduleStore` (schedules.py): workflows, schedules, code locations and notices
- `AdminStore` (administration.py): tokens, audit, shared settings, limits, controls, pruning

Callers use the narrowest part that they need. All parts can read. A backend implements `StateStore`, which is all of
them; tests/conformance checks every sentence of the contract for SQLite, Postgres and memory.

A scheduler passes its decisions as data, with the epoch they were made under, and the store writes all of them or
refuses. A lost race is a result, not an exception. After a StoreError it is unknown what was written: the caller
discards its in-memory state and reads again.
"""

from __future__ import annotations

from typing import Protocol

from ork.state.administration import AdminStore
from ork.state.schedules import ScheduleStore
from ork.state.scheduling import SchedulerStore


class StateStore(SchedulerStore, ScheduleStore, AdminStore, Protocol):
    """A whole store: everything a process needs, on one handle."""

    async def close(self) -> None:
        """Close the handle. May be called twice."""
        ...

"""The state store: one contract, named by its users in parts.

- `StateReader` (reading.py): status, API and command line
- `SchedulerStore` (scheduling.py): schedulers; its part `RunRequests` creates runs and takes commands
- `ScheduleStore` (schedules.py): workflows, schedules, code locations and notices
- `AdminStore` (administration.py): tokens, audit, shared settings, limits, controls, pruning

A user names the narrowest of them. All of them can read. `StateStore` is a whole store, which is what a backend
implements: SQLite, Postgres and memory do, and tests/conformance holds each to every sentence of the contract.

Writes are data: a scheduler passes what it decided and the epoch it decided under, and the store writes it all or
refuses it. Losing a race is an answer, not an exception. After a StoreError nothing is known: the caller discards its
in-memory state and reads again.
"""

from __future__ import annotations

from typing import Protocol

from ork.state.administration import AdminStore
from ork.state.schedules import ScheduleStore
from ork.state.scheduling import SchedulerStore


class StateStore(SchedulerStore, ScheduleStore, AdminStore, Protocol):
    """A whole store: everything a process needs, on one handle."""

    async def close(self) -> None:
        """May be called twice."""
        ...

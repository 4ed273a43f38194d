"""The state store of a simulated world, and each process's own view of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol, cast

from ork.state.sqlite.store import SqliteStore
from ork.state.store import StateStore
from ork.testing.faults import Faults, SimulatedProcess
from ork.testing.invariants import Judge
from ork.testing.kernel import Kernel
from ork.testing.locking import wait_for_lock
from ork.testing.store import LaggingStore

Notify = Callable[[SimulatedProcess | None], None]
"""Is called with the writer after each change that the store reports to those who wait."""


class Backend(Protocol):
    """`store` has no faults."""

    store: StateStore

    def view(self, process: SimulatedProcess) -> StateStore: ...
    def begin_faults(self) -> None: ...
    def at_work(self) -> AbstractContextManager[None]: ...


class SqliteBackend:
    """One database in memory. A call is one step; faults come before and after it."""

    def __init__(self, kernel: Kernel, faults: Faults, judge: Judge, notify: Notify, lease_seconds: float) -> None:
        self.sqlite = SqliteStore(
            ":memory:", inline=True, clock=lambda: ("boot", kernel.time), lease_seconds=lease_seconds
        )
        self.store = cast(StateStore, self.sqlite)
        self._listener = self.sqlite.sibling()
        self._kernel, self._faults, self._judge, self._notify = kernel, faults, judge, notify

    def view(self, process: SimulatedProcess) -> StateStore:
        return cast(StateStore, LaggingStore(self.store, process, self._judge, self._on_write))

    def begin_faults(self) -> None:
        wait_for_lock(self.sqlite, self._kernel, self._faults)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        yield

    async def _on_write(self, writer: SimulatedProcess) -> None:
        if await self._listener.wait_for_change(0.0):
            self._notify(writer)

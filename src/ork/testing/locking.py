"""Simulated waits for the store's write lock: others write between a call's first read and its transaction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ork.state.sqlite.store import SqliteStore
from ork.testing.faults import Faults
from ork.testing.kernel import Kernel

LONGEST_WAIT_SECONDS = 10.0


def wait_for_lock(store: SqliteStore, kernel: Kernel, faults: Faults) -> None:
    """Let writes wait, in synchronous code, before their transactions begin."""
    database = store._db
    begin = database.changing

    @contextmanager
    def changing() -> Iterator[int]:
        if kernel.current is not None and faults.happens(faults.rates.lock_wait):
            kernel.stall(faults.random.uniform(0.0, LONGEST_WAIT_SECONDS))
        with begin() as changed:
            yield changed

    database.changing = changing  # type: ignore[method-assign]

"""The SQLite store: the verbs of `ork.state.store.StateStore`, each one call of a function of that name in this folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from ork.errors import StoreError, StoreUnavailableError
from ork.model.ids import SchedulerId
from ork.model.run import SchedulerEntry
from ork.state.records import Committed, RunChanges
from ork.state.sqlite import (
    access,
    commit,
    definitions,
    installation,
    locations,
    notices,
    ownership,
    pruning,
    quarantine,
    reads,
    requests,
    schedules,
    set_aside_list,
)
from ork.state.sqlite.connection import IN_MEMORY, Durability
from ork.state.sqlite.database import LEASE_SECONDS, Database, LeaseClock, boot_clock, open_database
from ork.state.sqlite.failures import is_locked
from ork.state.sqlite.thread import WriterThread
from ork.state.verbs import DatabaseStore

if TYPE_CHECKING:
    from ork.state.sqlite.waiting import Listener

# Rows of a commit that may be done in the loop itself: it takes less than ten milliseconds. While all processors are busy
# with tasks, the way to another thread and back takes longer.
SMALL = 1024
COMMITS_PER_PAUSE = 200

_MODULES = (
    access, definitions, installation, locations, notices, ownership, pruning, quarantine, reads, requests, schedules,
    set_aside_list,
)  # fmt: skip

P = ParamSpec("P")
T = TypeVar("T")


def _is_small(changes: Sequence[RunChanges]) -> bool:
    return sum(2 + len(each.tasks) + len(each.attempts) + 2 * len(each.launches) for each in changes) <= SMALL


class SqliteStore(DatabaseStore, modules=_MODULES):
    """One handle. Opening creates the file or brings its schema up to date.

    Statements run on a thread of the handle's own (but for a small commit that nothing is in the way of), or with
    `inline` in the caller's: then awaiting a verb never yields. Only with `inline` may the path be ":memory:"; such a
    store has no way to wait, so `wait_for_change` answers at once.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        durability: Durability = "normal",
        lease_seconds: float = LEASE_SECONDS,
        clock: LeaseClock = boot_clock,
        inline: bool = False,
    ) -> None:
        self.path = os.fspath(path)
        self._begin(open_database(self.path, durability, clock, lease_seconds), inline)

    def _begin(self, database: Database, inline: bool) -> None:
        self._db = database
        self._thread = None if inline else WriterThread()
        self._listener: Listener | None = None
        self._commits = 0
        self._is_closed = False

    def sibling(self) -> SqliteStore:
        """Another handle on the same connection: how a simulation gives each of its processes a store in memory."""
        if self._thread is not None:
            raise StoreError("Only an inline store can share its connection.")
        other = object.__new__(SqliteStore)
        other.path = self.path
        shared = Database(self._db.connection, self._db.clock, self._db.lease_seconds, owns_connection=False)
        other._begin(shared, inline=True)
        return other

    # ── ownership ────────────────────────────────────────────────────────────────────────────────

    async def commit(self, scheduler: SchedulerId, changes: Sequence[RunChanges], now: datetime) -> Committed:
        self._commits += 1
        is_small = not self._db.connection.waits_for_the_disk and _is_small(changes)
        # Somebody has to empty the log now and then.
        do = self._do_quickly if is_small and self._commits % COMMITS_PER_PAUSE else self._do
        return await do(commit.commit, scheduler, changes, now)

    async def _do_quickly(
        self, function: Callable[Concatenate[Database, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """For what takes no longer than asking another thread to do it, and never answers None: in the caller's, if nothing
        is in the way."""
        done = self._done_here(function, *args, **kwargs)
        return await self._do(function, *args, **kwargs) if done is None else done

    def _done_here(
        self, function: Callable[Concatenate[Database, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T | None:
        """None if something is in the way."""
        if self._thread is None or self._is_closed:
            return None
        with self._thread.stepping_aside() as is_free:
            if not is_free:
                return None
            try:
                self._db.connection.wait(False)
                return function(self._db, *args, **kwargs)
            except StoreUnavailableError as error:
                if is_locked(error):  # nothing has begun
                    return None
                raise

    # ── waking ───────────────────────────────────────────────────────────────────────────────────

    async def wait_for_change(self, timeout: float | None) -> bool:
        if self.path == IN_MEMORY:
            return await self._do(Database.look_for_change)
        if self._listener is None:
            self._listener = self._listen()
        return await self._listener.wait(timeout)

    def _listen(self) -> Listener:
        from ork.state.sqlite.failures import file_error
        from ork.state.sqlite.waiting import Listener  # loads asyncio, which a short command can do without

        assert self._db.waker is not None
        try:
            return Listener(self.path, self._db.waker, lambda: self._do(Database.look_for_change))
        except OSError as error:
            raise file_error(error, self._db.waker.folder) from error

    async def list_schedulers(self) -> tuple[SchedulerEntry, ...]:
        return await self._do_quickly(ownership.list_schedulers)

    async def close(self) -> None:
        """May be called twice. A sibling's connection stays open until the handle that opened it is closed."""
        if self._is_closed:
            return
        if self._listener is not None:
            self._listener.close()
        try:
            await self._do(Database.close)
        finally:
            self._is_closed = True
            if self._thread is not None:
                self._thread.stop()

    async def _do(self, verb: Callable[Concatenate[Database, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        if self._is_closed:
            raise StoreError(f"The store {self.path} has been closed.")
        if self._thread is None:
            return verb(self._db, *args, **kwargs)
        return await self._thread.call(partial(self._in_thread, partial(verb, self._db, *args, **kwargs)))

    def _in_thread(self, job: Callable[[], T]) -> T:
        self._db.connection.wait(True)
        return job()

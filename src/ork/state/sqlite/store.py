"""The SQLite store: each verb of `ork.state.store.StateStore` calls the function of that name in this package."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

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
from ork.state.sqlite.failures import file_error, is_locked
from ork.state.sqlite.wake import ChangeListener
from ork.state.verbs import DatabaseStore

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future


# Maximum number of rows of a commit that may run in the event loop: it takes less than ten milliseconds. While all
# cores are busy with tasks, switching to another thread and back takes longer.
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
    """One handle. Opening it creates the file or migrates its schema.

    Statements run on the handle's own thread, except small commits that need not wait. With `inline` they run in the
    calling thread, and awaiting a verb never yields. The path ":memory:" requires `inline`; such a store cannot wait,
    so `wait_for_change` returns at once.
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
        self._listener: ChangeListener | None = None
        self._commits = 0
        self._is_closed = False

    def sibling(self) -> SqliteStore:
        """Another handle on the same connection. A simulation gives each of its processes one, on a store in memory."""
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
        # Some commits must wait, so that the write-ahead log is checkpointed now and then.
        do = self._do_quickly if is_small and self._commits % COMMITS_PER_PAUSE else self._do
        return await do(commit.commit, scheduler, changes, now)

    async def _do_quickly(
        self, function: Callable[Concatenate[Database, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a function in the calling thread if it need not wait, else on the handle's thread. For functions that
        take less time than switching threads and never return None."""
        done = self._try_inline(function, *args, **kwargs)
        return await self._do(function, *args, **kwargs) if done is None else done

    def _try_inline(
        self, function: Callable[Concatenate[Database, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T | None:
        """The result of the function, or None if it would have to wait."""
        if self._thread is None or self._is_closed:
            return None
        with self._thread.while_idle() as is_free:
            if not is_free:
                return None
            try:
                self._db.connection.wait(False)
                return function(self._db, *args, **kwargs)
            except StoreUnavailableError as error:
                if is_locked(error):  # the transaction has not begun
                    return None
                raise

    # ── waking ───────────────────────────────────────────────────────────────────────────────────

    async def wait_for_change(self, timeout: float | None) -> bool:
        if self.path == IN_MEMORY:
            return await self._do(Database.look_for_change)
        if self._listener is None:
            self._listener = self._listen()
        return await self._listener.wait(timeout)

    def _listen(self) -> ChangeListener:
        assert self._db.waker is not None
        try:
            return ChangeListener(self.path, self._db.waker, lambda: self._do(Database.look_for_change))
        except OSError as error:
            raise file_error(error, self._db.waker.folder) from error

    async def list_schedulers(self) -> tuple[SchedulerEntry, ...]:
        return await self._do_quickly(ownership.list_schedulers)

    async def close(self) -> None:
        """Close the handle. May be called twice. A sibling's connection stays open until the handle that opened it is
        closed."""
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


class WriterThread:
    """The thread on which a handle's statements run, so that waiting for the disk never blocks the event loop. It runs jobs in
    order, including those whose caller has been cancelled.

    Work that is certain not to wait may run in the event loop while the thread is idle: switching threads takes longer than
    a small commit."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[tuple[Callable[[], Any], AbstractEventLoop, Future[Any]] | None] = SimpleQueue()
        self._free = threading.Lock()  # held while the connection is in use
        # A daemon thread, so that a program that exits without closing its store does not hang.
        self._thread = threading.Thread(target=self._work, name="ork-store", daemon=True)
        self._thread.start()

    async def call(self, job: Callable[[], T]) -> T:
        from asyncio import get_running_loop  # late: a cold start without a loop does not need it

        loop = get_running_loop()
        future: Future[T] = loop.create_future()
        self._jobs.put((job, loop, future))
        return await future

    @contextmanager
    def while_idle(self) -> Iterator[bool]:
        """Yield True if the thread is idle; it then starts no job until the block ends."""
        is_free = self._free.acquire(blocking=False)
        try:
            yield is_free
        finally:
            if is_free:
                self._free.release()

    def stop(self) -> None:
        """Return when all jobs submitted before are done."""
        self._jobs.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            call, loop, future = job
            try:
                with self._free:
                    answer, error = call(), None
            except BaseException as raised:
                answer, error = None, raised
            _deliver(loop, future, answer, error)


def _deliver(loop: AbstractEventLoop, future: Future[Any], answer: Any, error: BaseException | None) -> None:
    def settle() -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(answer)

    # After the loop is closed, no caller waits.
    if not loop.is_closed():
        try:
            loop.call_soon_threadsafe(settle)
        except RuntimeError:
            return

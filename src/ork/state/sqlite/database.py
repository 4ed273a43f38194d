"""The database that every verb works on: a connection, the store's clock, and what a handle remembers between calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from ork.errors import StoreError, UnreadableError
from ork.model.ids import RunId, VersionId
from ork.model.run import Run
from ork.model.workflow import Version
from ork.state.quarantine import missing_version
from ork.state.sqlite.connection import IN_MEMORY, Connection, Durability, Row, prepare_file
from ork.state.sqlite.rows import json_text, lenient
from ork.state.sqlite.schema import bring_up_to_date
from ork.state.sqlite.wake import Waker
from ork.state.versions import KnownVersions
from ork.system import system

LeaseClock: TypeAlias = Callable[[], tuple[str, float]]

LEASE_SECONDS = 60.0


def boot_clock() -> tuple[str, float]:
    """The boot id of the machine, and the seconds since boot including sleep. This clock cannot be set."""
    return _boot_id(), system.awake_seconds()


class Database:
    def __init__(
        self, connection: Connection, clock: LeaseClock, lease_seconds: float, *, owns_connection: bool = True
    ) -> None:
        self.connection = connection
        self.clock = clock
        self.lease_seconds = lease_seconds
        self._owns_connection = owns_connection
        self.waker = None if connection.path == IN_MEMORY else Waker(connection.path)
        self.versions = KnownVersions()
        # The last value of the counter that this handle has written or read.
        self._seen = self.last_change()

    @contextmanager
    def changing(self) -> Iterator[int]:
        """A write transaction that notifies other handles when it is durable. Yields the number of the change."""
        with self.connection.writing():
            changed = self._raise_counter()
            yield changed
        # If another handle committed in between, `_seen` stays behind, so that the next look finds that commit.
        if changed == self._seen + 1:
            self._seen = changed
        if self.waker is not None:
            self.waker.wake_others()

    def _raise_counter(self) -> int:
        """Increment the counter and return it. Assumes the last value seen; reads the counter only if that is
        outdated."""
        changed = self._seen + 1
        if not self.connection.run("raise_counter", {"changed": changed}):
            changed = self.last_change() + 1
            self.connection.run("raise_counter", {"changed": changed})
        return changed

    def count_change(self) -> int:
        """Return the number of a change in a transaction that notifies no one. Our own next look finds it as well."""
        return self._raise_counter()

    def look_for_change(self) -> bool:
        """Return whether the counter has changed since the last look."""
        changed = self.last_change()
        happened, self._seen = changed != self._seen, changed
        return happened

    def lease(self) -> tuple[str, float]:
        """The boot id and the time at which a lease granted now expires."""
        boot, now = self.clock()
        return boot, now + self.lease_seconds

    def version(self, id: VersionId) -> Version | None:
        """The version, read and decoded once because versions never change. UnreadableError if its document is
        damaged."""
        known = self.versions.get(id)
        if known is None:
            row = self.connection.row("get_version", {"id": id})
            if row is None:
                return None
            known = self.versions.decoded(id, *row)
        return known

    def needed_version(self, id: VersionId) -> Version:
        version = self.version(id)
        if version is None:
            raise UnreadableError(missing_version(id))
        return version

    def order(self, id: VersionId) -> dict[str, int]:
        """The position of each task in the workflow."""
        order = self.versions.known_order(id)
        return self.versions.order_of(self.needed_version(id)) if order is None else order

    def runs(self, ids: list[str]) -> list[tuple[Run, Row]]:
        """The existing runs in the order of `ids`, each with its row. Includes damaged runs, for readers."""
        return [(lenient.run(row), row) for row in self.run_rows(ids)]

    def run_rows(self, ids: list[str]) -> list[Row]:
        return self.connection.rows("runs_by_id", {"ids": json_text(ids)})

    def listed_runs(self, ids: list[str]) -> tuple[Run, ...]:
        """The existing runs in the order of `ids`, without their params."""
        return tuple(lenient.run(row) for row in self.connection.rows("listed_runs", {"ids": json_text(ids)}))

    def run(self, id: RunId) -> Run | None:
        found = self.runs([id])
        return found[0][0] if found else None

    def close(self) -> None:
        if self.waker is not None:
            self.waker.close()
        if self._owns_connection:
            self.connection.close()

    @property
    def statements(self) -> int:
        return self.connection.statements

    def last_change(self) -> int:
        return int(self.connection.rows("read_counter")[0][0])


def open_database(path: str, durability: Durability, clock: LeaseClock, lease_seconds: float) -> Database:
    """Open the database; create it or migrate its schema if needed."""
    prepare_file(path)
    connection = Connection(path, durability=durability)
    try:
        bring_up_to_date(connection)
        return Database(connection, clock, lease_seconds)
    except BaseException:
        connection.close()
        raise


_known_boot_id: list[str] = []


def _boot_id() -> str:
    if not _known_boot_id:
        boot = system.boot_id()
        if boot is None:
            raise StoreError("this system does not tell when it was booted, so leases cannot be kept")
        _known_boot_id.append(boot)
    return _known_boot_id[0]

"""Migrations: numbered, forward only, each database brought to the newest schema in one transaction."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator, Sequence

from ork.errors import StoreError, StoreUnavailableError
from ork.state.sql import Migration, SchemaStatus, load_migrations, newest_number, refuse_newer
from ork.state.sqlite.connection import BUSY_SECONDS, IN_MEMORY, Connection, prepare_file
from ork.state.sqlite.failures import is_locked

__all__ = ["FOLDER", "Migration", "SchemaStatus", "bring_up_to_date", "db_status", "known_schema", "migrate"]

FOLDER = os.path.join(os.path.dirname(__file__), "migrations")
APPLICATION_ID = 1332898609  # "Ork1": distinguishes our databases from those of other programs
_RETRY_SECONDS = 0.02


def known_schema() -> int:
    return newest_number(FOLDER)


def db_status(path: str) -> SchemaStatus:
    """The schema of the database. Creates and changes nothing."""
    if path == IN_MEMORY or not os.path.exists(path):
        return SchemaStatus(0, known_schema())
    connection = Connection(path)
    try:
        return SchemaStatus(_current(connection), known_schema())
    finally:
        connection.close()


def migrate(path: str) -> SchemaStatus:
    """Create the database if needed and migrate it to the newest schema."""
    prepare_file(path)
    connection = Connection(path)
    try:
        bring_up_to_date(connection)
        return SchemaStatus(_current(connection), known_schema())
    finally:
        connection.close()


def bring_up_to_date(connection: Connection, migrations: Sequence[Migration] | None = None) -> SchemaStatus:
    """Migrate to the newest schema and return the status found before. One read if nothing has to be done. Several
    processes may do this at the same time."""
    known = known_schema() if migrations is None else migrations[-1].number
    status = SchemaStatus(_current(connection), known)
    refuse_newer(connection.path, status)
    if status.current < status.known:
        _use_write_ahead_log(connection)
        with connection.transaction("begin_alone"):
            _apply(connection, load_migrations(FOLDER) if migrations is None else migrations)
    return status


def _current(connection: Connection) -> int:
    number, application = connection.rows("schema_number")[0]
    if number and application != APPLICATION_ID:
        raise _foreign(connection.path)
    return int(number)


def _apply(connection: Connection, migrations: Sequence[Migration]) -> None:
    # Read again under the lock: another process may have migrated while this one waited.
    current = _current(connection)
    if current == 0:
        _refuse_foreign(connection)
    for migration in migrations:
        if migration.number > current:
            for statement in _statements(migration.text):
                connection.run_text(statement)
    if current == 0:
        connection.run("make_signing_key", {"key": os.urandom(32)})


def _refuse_foreign(connection: Connection) -> None:
    if connection.rows("count_schema_objects") != [(0,)]:
        raise _foreign(connection.path)


def _foreign(path: str) -> StoreError:
    return StoreError(f"{path} is a database of another program.", hint="Choose another file with --store.")


def _use_write_ahead_log(connection: Connection) -> None:
    """Switch the file to write-ahead logging, which the file remembers. This needs an exclusive lock and does not use
    SQLite's busy timeout, so it is retried here."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.rows("use_write_ahead_log")
            return
        except StoreUnavailableError as error:
            if time.monotonic() > deadline or not is_locked(error):
                raise
        time.sleep(_RETRY_SECONDS)


def _statements(text: str) -> Iterator[str]:
    """Yield the statements one by one: `executescript` would commit the current transaction first."""
    statement = ""
    for line in text.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""

"""One connection: opens the file, runs statements and transactions, and translates SQLite's errors."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Literal, TypeAlias

from ork.errors import StoreError
from ork.state.sqlite.failures import file_error, store_error
from ork.state.sqlite.sql import sql

Durability: TypeAlias = Literal["normal", "full"]
Values: TypeAlias = Mapping[str, Any] | Sequence[Any]
Row: TypeAlias = tuple[Any, ...]

IN_MEMORY = ":memory:"
BUSY_SECONDS = 30.0
_OLDEST_SQLITE = (3, 38, 0)  # the first with STRICT tables, RETURNING and built-in JSON functions

# Neither adapter changes what is stored. Without them, sqlite3 looks for an adapter in three places for every empty
# column of every row and raises an exception each time, which took a third of the time of a commit.
_nothing: dict[None, None] = {}
sqlite3.register_adapter(type(None), _nothing.get)
sqlite3.register_adapter(bool, int)

NULL = float("nan")
"""Stands for NULL in rows that are written by the thousand: SQLite stores NaN as NULL, and binds a float without
looking for an adapter."""


_NOT_UTF_8 = "Could not decode to UTF-8"


def _escaped(text: bytes) -> str:
    return text.decode("utf-8", "backslashreplace")


class Connection:
    """A connection that counts its statements. After an error the transaction is rolled back and the connection stays
    usable."""

    def __init__(self, path: str, *, durability: Durability = "normal", busy_seconds: float = BUSY_SECONDS) -> None:
        self.path = path
        self.statements = 0
        self.waits_for_the_disk = durability == "full"
        self._busy_seconds = busy_seconds
        self._may_wait = True
        self._raw = _connect(path, busy_seconds)
        try:
            self._raw.executescript(sql("settings"))
            self._raw.execute(sql(f"durability_{durability}"))
        except sqlite3.Error as error:
            self._raw.close()
            raise store_error(error, path) from error

    @property
    def raw(self) -> sqlite3.Connection:
        """The sqlite3 connection, for tests that damage stored rows."""
        return self._raw

    def run_text(self, statement: str) -> None:
        """Run a statement given as text, for migrations."""
        try:
            self._raw.execute(statement)
        except sqlite3.Error as error:
            raise store_error(error, self.path) from error

    def writing(self) -> AbstractContextManager[None]:
        """A write transaction."""
        return self.transaction("begin_writing")

    def reading(self) -> AbstractContextManager[None]:
        """A read transaction: all reads in it see the same snapshot."""
        return self.transaction("begin_reading")

    @contextmanager
    def transaction(self, begin: str) -> Iterator[None]:
        self.run(begin)
        try:
            yield
            self.run("commit")
        except BaseException:
            self._roll_back()
            raise

    def wait(self, may_wait: bool) -> None:
        """Set whether statements wait for locks. Without waiting, a lock of another process is an error at once, and
        commits leave the checkpoint of the write-ahead log to a later commit that may wait."""
        if may_wait == self._may_wait:
            return
        milliseconds = str(int(self._busy_seconds * 1000) if may_wait else 0)
        try:
            self._raw.execute(sql("wait_for_locks").replace("MILLISECONDS", milliseconds))
            self._raw.execute(sql("empty_the_log" if may_wait else "keep_the_log"))
        except sqlite3.Error as error:
            raise store_error(error, self.path) from error
        self._may_wait = may_wait

    def run(self, name: str, values: Values = ()) -> int:
        """Run the named statement and return the number of rows written."""
        self.statements += 1
        try:
            return self._raw.execute(sql(name), values).rowcount
        except sqlite3.Error as error:
            raise store_error(error, self.path) from error

    def run_many(self, name: str, rows: list[Row]) -> int:
        """Run the named statement for each row and return the total number of rows written."""
        if not rows:
            return 0
        self.statements += len(rows)
        try:
            return self._raw.executemany(sql(name), rows).rowcount
        except sqlite3.Error as error:
            raise store_error(error, self.path) from error

    def rows(self, name: str, values: Values = ()) -> list[Row]:
        self.statements += 1
        try:
            return self._raw.execute(sql(name), values).fetchall()
        except sqlite3.Error as error:
            if _NOT_UTF_8 in str(error):
                return self._damaged_rows(name, values)
            raise store_error(error, self.path) from error

    def _damaged_rows(self, name: str, values: Values) -> list[Row]:
        """Read again with invalid UTF-8 escaped, so that one damaged text does not hide the other rows."""
        self._raw.text_factory = _escaped
        try:
            return self._raw.execute(sql(name), values).fetchall()
        except sqlite3.Error as error:
            raise store_error(error, self.path) from error
        finally:
            self._raw.text_factory = str

    def row(self, name: str, values: Values = ()) -> Row | None:
        found = self.rows(name, values)
        return found[0] if found else None

    def close(self) -> None:
        try:
            self._raw.close()
        except sqlite3.Error as error:
            raise store_error(error, self.path) from error

    def _roll_back(self) -> None:
        # After "disk full" SQLite may have rolled back already; on a damaged disk the rollback may fail as well.
        try:
            if self._raw.in_transaction:
                self._raw.execute(sql("roll_back"))
        except sqlite3.Error:
            pass


def prepare_file(path: str) -> None:
    """Create the file and its folder if needed, accessible only to this user. SQLite creates its side files with the
    same mode."""
    if path == IN_MEMORY:
        return
    try:
        os.makedirs(os.path.dirname(path) or ".", mode=0o700, exist_ok=True)
        # O_EXCL: an existing file must not be opened here. Closing it would drop all locks that other handles of this
        # process hold on it, and another process could then remove their write-ahead log.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        return
    except OSError as error:
        raise file_error(error, path) from error


def _connect(path: str, busy_seconds: float) -> sqlite3.Connection:
    if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
        raise StoreError(
            f"SQLite {sqlite3.sqlite_version} is too old for the store.",
            hint="Use a Python whose sqlite3 module is built with SQLite 3.38 or newer.",
        )
    try:
        # Opened by one thread and used by another, never by two at the same time.
        return sqlite3.connect(
            path, timeout=busy_seconds, isolation_level=None, check_same_thread=False, cached_statements=256
        )
    except sqlite3.Error as error:
        raise store_error(error, path) from error

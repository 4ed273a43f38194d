"""One connection: how it is opened, how its transactions begin and end, and what its errors are called."""

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
_OLDEST_SQLITE = (3, 38, 0)  # STRICT tables, RETURNING, JSON functions always there

# Both are kept as they would be anyway. Without an adapter, sqlite3 looks for one in three places for every empty column
# of every row, and makes an error of each: that took a third of the time of a commit.
_nothing: dict[None, None] = {}
sqlite3.register_adapter(type(None), _nothing.get)
sqlite3.register_adapter(bool, int)

NULL = float("nan")
"""For empty columns of rows that are written by the thousand: SQLite keeps it as NULL, and a number is bound without that
look for an adapter."""


_NOT_UTF_8 = "Could not decode to UTF-8"


def _escaped(text: bytes) -> str:
    return text.decode("utf-8", "backslashreplace")


class Connection:
    """Counts the statements it runs. Usable after an error: what had begun has been rolled back."""

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
        """For tests that damage what is stored."""
        return self._raw

    def run_text(self, statement: str) -> None:
        """For migrations, whose statements have no names."""
        try:
            self._raw.execute(statement)
        except sqlite3.Error as error:
            raise store_error(error, self.path) from error

    def writing(self) -> AbstractContextManager[None]:
        """All or nothing."""
        return self.transaction("begin_writing")

    def reading(self) -> AbstractContextManager[None]:
        """All reads inside see the same moment."""
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
        """From now on. Who may not wait meets a lock of others as an error at once, and leaves it to the next one who may
        to move what is in the log into the database."""
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
        """Runs the named statement; the number of rows it wrote is the answer."""
        self.statements += 1
        try:
            return self._raw.execute(sql(name), values).rowcount
        except sqlite3.Error as error:
            raise store_error(error, self.path) from error

    def run_many(self, name: str, rows: list[Row]) -> int:
        """Runs the named statement for each; how many rows that wrote in all is the answer."""
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
        """Reads once more with the bytes that are no UTF-8 escaped: one damaged text must not hide the other rows."""
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
        # After a full disk SQLite may have rolled back by itself; a broken one may refuse even this.
        try:
            if self._raw.in_transaction:
                self._raw.execute(sql("roll_back"))
        except sqlite3.Error:
            pass


def prepare_file(path: str) -> None:
    """The file and its folder exist and belong to this user alone. SQLite gives its side files the same mode."""
    if path == IN_MEMORY:
        return
    try:
        os.makedirs(os.path.dirname(path) or ".", mode=0o700, exist_ok=True)
        # Only one that is not there: closing a file drops every lock this process holds on it, and with them those of
        # its other handles, whose log the next process to leave would then take away.
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
        # Opened by one thread and used by another, never by two at once.
        return sqlite3.connect(
            path, timeout=busy_seconds, isolation_level=None, check_same_thread=False, cached_statements=256
        )
    except sqlite3.Error as error:
        raise store_error(error, path) from error

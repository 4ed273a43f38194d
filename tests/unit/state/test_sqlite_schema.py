"""Migrations: one after another, all or nothing, whoever else starts at the same time."""

from __future__ import annotations

import os
import signal
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from ork.errors import StoreError
from ork.state.sqlite import SchemaStatus, SqliteStore, db_status, migrate
from ork.state.sqlite.connection import Connection
from ork.state.sqlite.schema import FOLDER, Migration, bring_up_to_date, known_schema

KILLED_BEFORE = """
import os, signal, sys
from ork.state.sqlite.connection import Connection
from ork.state.sqlite.schema import bring_up_to_date

connection, left = Connection(sys.argv[1]), int(sys.argv[2])

def count(statement):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

connection._raw.set_trace_callback(count)
bring_up_to_date(connection)
"""

OPEN_AND_SHOW_KEY = """
import asyncio, sys
from ork.state.sqlite import SqliteStore

store = SqliteStore(sys.argv[1])
print(asyncio.run(store.signing_key()).hex())
"""


def schema_of(path: Path) -> list[tuple[str, ...]]:
    connection = sqlite3.connect(path)
    rows = connection.execute("SELECT type, name, sql FROM sqlite_master ORDER BY type, name").fetchall()
    connection.close()
    return rows


def test_a_fresh_database_gets_the_newest_schema(tmp_path: Path) -> None:
    path = str(tmp_path / "new" / "folder" / "ork.db")
    assert db_status(path) == SchemaStatus(0, known_schema())
    assert not os.path.exists(path)
    assert migrate(path) == SchemaStatus(known_schema(), known_schema())
    assert db_status(path) == SchemaStatus(known_schema(), known_schema())
    assert migrate(path) == SchemaStatus(known_schema(), known_schema())


def test_the_store_belongs_to_its_user_alone(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "ork.db"
    SqliteStore(path, inline=True)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    for file in path.parent.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_each_migration_ends_with_its_own_number() -> None:
    for file in Path(FOLDER).iterdir():
        number = int(file.name[:4])
        assert file.read_text().rstrip().endswith(f"PRAGMA user_version = {number};")


def test_opening_an_up_to_date_database_takes_hardly_a_statement(tmp_path: Path) -> None:
    path = str(tmp_path / "ork.db")
    migrate(path)
    store = SqliteStore(path, inline=True)
    assert store._db.connection.statements == 2


@pytest.mark.parametrize("statement", [2, 3, 10, 20, 30, 34])
def test_a_migration_killed_on_its_way_leaves_nothing_half_done(tmp_path: Path, statement: int) -> None:
    path, whole = tmp_path / "ork.db", tmp_path / "whole.db"
    migrate(str(whole))
    killed = subprocess.run([sys.executable, "-c", KILLED_BEFORE, str(path), str(statement)])
    assert killed.returncode == -signal.SIGKILL
    assert db_status(str(path)).current == 0
    migrate(str(path))
    assert schema_of(path) == schema_of(whole)


@pytest.mark.slow
def test_many_processes_may_open_a_fresh_database_at_once(tmp_path: Path) -> None:
    path = str(tmp_path / "ork.db")
    openers = [
        subprocess.Popen(
            [sys.executable, "-c", OPEN_AND_SHOW_KEY, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for _ in range(6)
    ]
    answers = [opener.communicate() for opener in openers]
    assert [error.decode() for _, error in answers] == [""] * 6
    assert len({key for key, _ in answers}) == 1


def test_a_later_migration_keeps_what_is_there(tmp_path: Path) -> None:
    first = Migration(1, (Path(FOLDER) / "0001_first.sql").read_text())
    second = Migration(2, "ALTER TABLE meta ADD COLUMN more TEXT;\nPRAGMA user_version = 2;")
    connection = Connection(str(tmp_path / "ork.db"))
    bring_up_to_date(connection, [first])
    key = connection.rows("signing_key")
    assert bring_up_to_date(connection, [first, second]) == SchemaStatus(1, 2)
    assert connection.rows("signing_key") == key
    assert bring_up_to_date(connection, [first, second]) == SchemaStatus(2, 2)
    connection.close()


def test_a_migration_that_fails_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "ork.db"
    migrate(str(path))
    before = schema_of(path)
    known = known_schema()
    broken = Migration(
        known + 1, f"CREATE TABLE more (a TEXT);\nCREATE TABLE meta (again TEXT);\nPRAGMA user_version = {known + 1};"
    )
    connection = Connection(str(path))
    with pytest.raises(StoreError):
        bring_up_to_date(connection, [broken])
    connection.close()
    assert schema_of(path) == before
    assert db_status(str(path)).current == known


def test_a_newer_schema_is_refused_with_a_plain_sentence(tmp_path: Path) -> None:
    path = tmp_path / "ork.db"
    migrate(str(path))
    raw = sqlite3.connect(path)
    raw.execute(f"PRAGMA user_version = {known_schema() + 7}")
    raw.close()
    with pytest.raises(StoreError, match=f"has schema {known_schema() + 7}; this Ork knows schemas up to") as caught:
        SqliteStore(path)
    assert "upgrade" in (caught.value.hint or "")
    assert db_status(str(path)).current == known_schema() + 7


@pytest.mark.parametrize("number", [0, 1])
def test_a_database_of_another_program_is_refused_and_left_alone(tmp_path: Path, number: int) -> None:
    path = tmp_path / "other.db"
    raw = sqlite3.connect(path)
    raw.execute("CREATE TABLE theirs (a TEXT)")
    raw.execute(f"PRAGMA user_version = {number}")
    raw.commit()
    raw.close()
    with pytest.raises(StoreError, match="another program"):
        SqliteStore(path)
    assert [row[1] for row in schema_of(path)] == ["theirs"]


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ork.db"
    path.write_text("these are words, and more words, and no database at all" * 100)
    with pytest.raises(StoreError, match="not a SQLite database"):
        SqliteStore(path)


def test_a_folder_that_cannot_be_made_is_named_in_the_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"file/ork\.db"):
        SqliteStore(tmp_path / "file" / "ork.db")

"""Queries: parameters are bound, never written into the text."""

from __future__ import annotations

import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest

import ork
from ork.sdk.sql import SqlDefaults, SqlExecutor
from ork.sdk.sql_drivers import DbApiConnection, SqlError, bound_values, connect, parameters_of

EVIL = "x'; DROP TABLE t; --"


@pytest.fixture
def url(tmp_path: Path) -> str:
    with sqlite3.connect(tmp_path / "a.db") as database:
        database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT)")
        database.executemany("INSERT INTO t (name) VALUES (?)", [("ada",), (EVIL,)])
    return f"sqlite:///{tmp_path}/a.db"


def run(database: str, inputs: dict[str, Any] | None = None, /, **config: Any) -> Any:
    executor = SqlExecutor(SqlDefaults(database))
    return executor.run(ork.Context(), SqlExecutor.TaskConfig(**config), inputs or {})


def test_parameters_are_found_outside_of_texts_comments_and_casts() -> None:
    query = "SELECT ':no', \":no\", a::text, :yes -- :no\n, /* :no */ $$ :no $$, $a$ :no $a$, :also, :yes"
    assert parameters_of(query) == ["yes", "also"]


def test_rows_come_back_as_objects(url: str) -> None:
    assert run(url, query="SELECT id, name FROM t WHERE id < 2") == [{"id": 1, "name": "ada"}]
    assert run(url, query="SELECT id FROM t", fetch="one") == {"id": 1}
    assert run(url, query="SELECT id FROM t WHERE id > 9", fetch="one") is None
    assert run(url, query="SELECT id FROM t WHERE id > 9") == []


def test_a_hostile_value_stays_a_value(url: str) -> None:
    assert run(url, {"name": EVIL}, query="SELECT id FROM t WHERE name = :name") == [{"id": 2}]
    assert run(url, {"name": EVIL}, query="INSERT INTO t (name) VALUES (:name)") == {"changed": 1}
    assert run(url, query="SELECT count(*) AS n FROM t", fetch="one") == {"n": 3}


def test_lists_and_objects_are_passed_on_as_json(url: str) -> None:
    rows = run(url, {"ids": [1, 2]}, query="SELECT value FROM json_each(:ids)")
    assert rows == [{"value": 1}, {"value": 2}]


def test_a_file_of_statements_is_one_transaction(url: str, tmp_path: Path) -> None:
    script = tmp_path / "script.sql"
    script.write_text("INSERT INTO t (name) VALUES ('a'), ('b');\nINSERT INTO t (name) VALUES ('c');")
    assert run(url, file=str(script), fetch="none") == {"changed": 3}
    script.write_text("INSERT INTO t (name) VALUES ('d'); INSERT INTO nowhere VALUES (1);")
    with pytest.raises(ork.TaskError, match="nowhere"):
        run(url, file=str(script), fetch="none")
    assert run(url, query="SELECT count(*) AS n FROM t", fetch="one") == {"n": 5}


@pytest.mark.parametrize(
    ("config", "message", "retry"),
    [
        ({"query": "SELECT :a, :b"}, "needs `:a`, `:b`; inputs: none", False),
        ({"query": "SELECT 1 AS a, 2 AS a"}, "two columns are named `a`", False),
        ({"query": "SELECT id FROM t", "limit": 1}, "more than 1 rows", False),
        ({"query": "SELECT 1", "fetch": "some"}, "`fetch: some` is none of", False),
        ({"query": "SELECT 1", "file": "x"}, "`query` or in a `file`", False),
        ({}, "`query` or in a `file`", False),
        ({"file": "nowhere.sql"}, "cannot read the query in nowhere.sql", False),
        ({"query": "SELECT 1", "url": "mysql://x"}, "`mysql` is not a supported database", False),
        ({"query": "SELECT 1", "url": "sqlite:///"}, "the URL names no file", False),
        ({"query": "SELECT a FROM nowhere"}, "no such table: nowhere", True),
    ],
)
def test_invalid_queries_are_reported(url: str, config: dict[str, Any], message: str, retry: bool) -> None:
    with pytest.raises(ork.TaskError, match=message.replace("(", r"\(")) as caught:
        run(url, **config)
    assert caught.value.retry is retry


def test_without_a_database_there_is_nothing_to_ask() -> None:
    with pytest.raises(ork.TaskError, match="no database"):
        SqlExecutor(SqlDefaults()).run(ork.Context(), SqlExecutor.TaskConfig(query="SELECT 1"), {})


def test_without_a_driver_postgres_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("psycopg", "psycopg2", "pg8000", "pg8000.dbapi", "asyncpg"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(SqlError, match="install psycopg, psycopg2, pg8000 or asyncpg"):
        connect("postgresql://localhost/x")


class Recorder:
    """A driver that remembers what it was asked to execute."""

    Error = OperationalError = PostgresError = InterfaceError = ValueError
    description = None
    rowcount = 1

    def __init__(self) -> None:
        self.executed: list[tuple[Any, ...]] = []

    def connect(self, _url: str) -> Recorder:
        return self

    def cursor(self) -> Recorder:
        return self

    def execute(self, *query: Any) -> None:
        self.executed.append(query)

    def commit(self) -> None:
        pass


def test_drivers_get_parameters_in_their_own_style() -> None:
    driver = Recorder()
    connection = DbApiConnection(driver, "postgresql://x")
    connection.execute("SELECT ':a', b::int % 2 FROM t WHERE a = :a", {"a": 1, "unused": 2}, limit=5)
    connection.execute("SELECT 5 % 2", {}, limit=5)
    assert driver.executed == [
        ("SELECT ':a', b::int %% 2 FROM t WHERE a = %(a)s", {"a": 1}),
        ("SELECT 5 % 2",),
    ]


def test_values_that_are_not_asked_for_are_not_bound() -> None:
    assert bound_values("SELECT :a", {"a": {"x": 1}, "b": 2}) == {"a": '{"x": 1}'}

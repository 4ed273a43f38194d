"""The executor `sql` on a real Postgres, through every driver this interpreter has."""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ork
from ork.sdk.sql import SqlDefaults, SqlExecutor

DRIVERS = ("psycopg", "psycopg2", "pg8000", "asyncpg")
EVIL = "x'; DROP TABLE t; --"


def programs() -> Path | None:
    found = shutil.which("pg_ctl")
    folders = [Path(found).parent] if found else sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    return folders[-1] if folders else None


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """A server of our own in a folder of its own, as a user that Postgres accepts."""
    bin = programs()
    if bin is None:
        pytest.skip("no Postgres on this machine: the executor `sql` is not tried on one")
    as_user = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups"] if os.getuid() == 0 else []
    folder = Path(tempfile.mkdtemp(prefix="ork-pg-"))
    folder.chmod(0o777)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def call(*command: object) -> None:
        log = open(folder / "commands.log", "ab")  # noqa: SIM115 - the server keeps it
        subprocess.run([*as_user, *map(str, command)], check=True, stdout=log, stderr=log, cwd=folder)

    try:
        call(bin / "initdb", "-D", folder / "data", "-U", "ork", "-A", "trust", "-E", "UTF8", "-N")
        options = f"-p {port} -c listen_addresses=127.0.0.1 -k {folder} -c fsync=off"
        call(bin / "pg_ctl", "-D", folder / "data", "-w", "-o", options, "-l", folder / "server.log", "start")
    except (subprocess.CalledProcessError, FileNotFoundError) as error:
        shutil.rmtree(folder, ignore_errors=True)
        pytest.skip(f"Postgres cannot be started here: {error}")
    yield f"postgresql://ork@127.0.0.1:{port}/postgres"
    call(bin / "pg_ctl", "-D", folder / "data", "-m", "immediate", "stop")
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=DRIVERS)
def url(request: pytest.FixtureRequest, server: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """With this driver alone: the others are hidden."""
    if importlib.util.find_spec(request.param) is None:
        pytest.skip(f"{request.param} is not installed: not tried")
    for name in DRIVERS:
        if name != request.param:
            monkeypatch.setitem(sys.modules, name, None)
            monkeypatch.setitem(sys.modules, f"{name}.dbapi", None)
    return server


def run(database: str, inputs: dict[str, Any] | None = None, /, **config: Any) -> Any:
    return SqlExecutor(SqlDefaults(database)).run(ork.Context(), SqlExecutor.TaskConfig(**config), inputs or {})


def test_statements_rows_and_hostile_values(url: str) -> None:
    run(url, query="DROP TABLE IF EXISTS t; CREATE TABLE t (id serial, name text, n int)", fetch="none")
    insert = "INSERT INTO t (name, n) VALUES (:name, :n)"
    assert run(url, {"name": EVIL, "n": 5}, query=insert) == {"changed": 1}
    assert run(url, {"name": "ada", "n": None}, query=insert) == {"changed": 1}
    rows = run(url, {"name": EVIL}, query="SELECT id, n % 3 AS rest, ':name'::text AS t FROM t WHERE name = :name")
    assert rows == [{"id": 1, "rest": 2, "t": ":name"}]
    assert run(url, query="SELECT count(*)::int AS n FROM t", fetch="one") == {"n": 2}
    parts = run(url, {"list": [1, 2]}, query="SELECT value::int AS v FROM json_array_elements_text(:list::text::json)")
    assert parts == [{"v": 1}, {"v": 2}]


def test_what_the_database_says_is_passed_on(url: str) -> None:
    with pytest.raises(ork.TaskError, match="nowhere"):
        run(url, query="SELECT 1 FROM nowhere")
    with pytest.raises(ork.TaskError, match="more than 1 rows"):
        run(url, query="SELECT * FROM generate_series(1, 3) AS n", limit=1)


def test_a_failed_statement_leaves_nothing_behind(url: str) -> None:
    run(url, query="DROP TABLE IF EXISTS u; CREATE TABLE u (n int)", fetch="none")
    with pytest.raises(ork.TaskError):
        run(url, {"n": 0}, query="WITH x AS (INSERT INTO u VALUES (1) RETURNING n) SELECT 1 / :n::int FROM x")
    assert run(url, query="SELECT * FROM u") == []


def test_nobody_there_may_be_tried_again(url: str) -> None:
    with pytest.raises(ork.TaskError, match="cannot connect") as caught:
        run("postgresql://ork@127.0.0.1:1/postgres", query="SELECT 1")
    assert caught.value.retry is True

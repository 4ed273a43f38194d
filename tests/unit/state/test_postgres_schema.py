"""Migrations on Postgres: one after another, all or nothing, whoever else starts at the same time."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator

import pytest

from ork.errors import StoreError
from ork.state.sql import Migration, SchemaStatus
from tests.postgres import Server, server_or_skip

KILLED_BEFORE = """
import asyncio, os, re, signal, sys
import asyncpg
from ork.state.sql import Migration, load_migrations
from ork.state.postgres import schema

async def main():
    connection, left = await asyncpg.connect(sys.argv[1]), int(sys.argv[2])
    text = "".join(migration.text for migration in load_migrations(schema.FOLDER))
    functions = text.split("$$")[1::2]  # their bodies, which hold statements too
    for number, body in enumerate(functions):
        text = text.replace(f"$${body}$$", f"$${number}$$")
    parts = [part for part in text.split(";\\n") if part.strip()]
    statements = [re.sub(r"[$]{2}([0-9]+)[$]{2}", lambda it: f"$${functions[int(it[1])]}$$", part) for part in parts]
    # Each statement a migration of its own, so that death can come between any two.
    steps = [Migration(number, part + ";") for number, part in enumerate(statements, 1)]
    execute = asyncpg.Connection.execute
    async def count(self, *words, **more):
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        if "SET number" in words[0]:
            return
        return await execute(self, *words, **more)
    asyncpg.Connection.execute = count
    await schema.bring_up_to_date(connection, "here", steps)

asyncio.run(main())
"""

SHOW_KEY = """
import asyncio, sys
from ork.state.postgres import PostgresStore

async def main():
    store = PostgresStore(sys.argv[1])
    print((await store.signing_key()).hex())
    await store.close()

asyncio.run(main())
"""


@pytest.fixture
def server() -> Server:
    return server_or_skip()


@pytest.fixture
def empty(server: Server) -> Iterator[str]:
    """The name of a database without our schema."""
    name = server.new_database()
    yield name
    server.drop_database(name)


def tables(server: Server, database: str) -> str:
    return server.sql("SELECT count(*) FROM pg_tables WHERE schemaname = 'ork'", database)


def test_a_fresh_database_gets_the_newest_schema(server: Server, empty: str) -> None:
    from ork.state.postgres import db_status, migrate
    from ork.state.postgres.schema import known_schema

    url = server.url(empty)
    assert asyncio.run(db_status(url)) == SchemaStatus(0, known_schema())
    assert tables(server, empty) == "0"
    assert asyncio.run(migrate(url)) == SchemaStatus(known_schema(), known_schema())
    assert asyncio.run(migrate(url)) == SchemaStatus(known_schema(), known_schema())
    assert asyncio.run(db_status(url)) == SchemaStatus(known_schema(), known_schema())


@pytest.mark.slow
def test_a_process_killed_anywhere_in_a_migration_leaves_nothing_behind(server: Server, empty: str) -> None:
    url = server.url(empty)
    for number in (1, 2, 3, 4, 9, 20, 40, 60):
        done = subprocess.run([sys.executable, "-c", KILLED_BEFORE, url, str(number)], capture_output=True, text=True)
        assert done.returncode == -9, done.stderr
        assert tables(server, empty) == "0"
    assert len(subprocess.check_output([sys.executable, "-c", SHOW_KEY, url]).strip()) == 64


@pytest.mark.slow
def test_several_processes_may_start_at_once(server: Server, empty: str) -> None:
    openers = [
        subprocess.Popen([sys.executable, "-c", SHOW_KEY, server.url(empty)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(5)
    ]  # fmt: skip
    answers = [opener.communicate() for opener in openers]
    assert [error.decode() for _, error in answers] == [""] * 5
    assert len({key for key, _ in answers}) == 1


def test_a_later_migration_keeps_what_is_there_and_one_that_fails_changes_nothing(server: Server, empty: str) -> None:
    import asyncpg

    from ork.state.postgres.schema import FOLDER, bring_up_to_date, known_schema, load_migrations

    known = load_migrations(FOLDER)
    more = Migration(known_schema() + 1, "ALTER TABLE ork.meta ADD COLUMN more text;")
    broken = Migration(known_schema() + 2, "CREATE TABLE ork.other (a text); CREATE TABLE ork.meta (a text);")

    async def scene() -> tuple[object, object, SchemaStatus]:
        connection = await asyncpg.connect(server.url(empty))
        await bring_up_to_date(connection, "here")
        key = await connection.fetchval("SELECT value FROM ork.meta")
        await bring_up_to_date(connection, "here", [*known, more])
        after = await connection.fetchval("SELECT value FROM ork.meta WHERE more IS NULL")
        with pytest.raises(asyncpg.DuplicateTableError):
            await bring_up_to_date(connection, "here", [*known, more, broken])
        status = await bring_up_to_date(connection, "here", [*known, more])
        await connection.close()
        return key, after, status

    key, after, status = asyncio.run(scene())
    assert key == after
    assert status == SchemaStatus(known_schema() + 1, known_schema() + 1)
    assert server.sql("SELECT to_regclass('ork.other') IS NULL", empty) == "t"


def test_a_newer_schema_is_refused_with_a_plain_sentence(server: Server, empty: str) -> None:
    from ork.state.postgres import PostgresStore, migrate

    asyncio.run(migrate(server.url(empty)))
    server.sql("UPDATE ork.schema SET number = 99", empty)
    with pytest.raises(StoreError, match="has schema 99; this Ork knows schemas up to") as caught:
        asyncio.run(PostgresStore(server.url(empty)).signing_key())
    assert "upgrade" in (caught.value.hint or "")


def test_a_schema_of_another_program_is_refused_and_left_alone(server: Server, empty: str) -> None:
    from ork.state.postgres import PostgresStore

    server.sql("CREATE SCHEMA ork; CREATE TABLE ork.theirs (a text)", empty)
    with pytest.raises(StoreError, match="another program"):
        asyncio.run(PostgresStore(server.url(empty)).signing_key())
    assert tables(server, empty) == "1"


def test_what_others_keep_in_the_same_database_is_left_alone(server: Server, empty: str) -> None:
    from ork.state.postgres import migrate

    server.sql("CREATE TABLE runs (theirs text); INSERT INTO runs VALUES ('mine')", empty)
    asyncio.run(migrate(server.url(empty)))
    assert server.sql("SELECT theirs FROM public.runs", empty) == "mine"

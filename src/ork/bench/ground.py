"""The environment of a scenario: a temporary folder and, on a server, temporary databases."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from ork.errors import OrkError, UsageError
from ork.model.record import Record
from ork.state.sql import parse_blocks
from ork.state.urls import without_password

SQL_FILE = Path(__file__).parent / "floors" / "postgres.sql"


class Ground(Record):
    """`server` is the URL of a Postgres whose user may create databases; None for SQLite in the project's folder."""

    folder: Path
    server: str | None = None

    @property
    def store(self) -> str:
        return "sqlite" if self.server is None else "postgres"

    @contextmanager
    def fresh_store(self) -> Iterator[str | None]:
        """The URL of a new empty database; None for SQLite, where each project has its own."""
        if self.server is None:
            yield None
            return
        name = f"ork_bench_{os.urandom(6).hex()}"
        ask(self.server, "create_database", name)
        try:
            yield urlunsplit(urlsplit(self.server)._replace(path=f"/{name}"))
        finally:
            ask(self.server, "drop_database", name)


def server_of(store: str | None) -> str | None:
    """The Postgres server for a benchmark with `--store`; None for SQLite in a temporary folder."""
    if store is None or store.partition(":")[0] == "sqlite":
        return None
    if store.partition(":")[0] not in ("postgresql", "postgres"):
        raise UsageError(
            f"cannot measure on {store}", hint="--store postgresql://user@host/postgres, or none for SQLite"
        )
    return store


def ask(server: str, statement: str, database: str) -> None:
    asyncio.run(execute(server, parse_blocks(SQL_FILE.read_text())[statement].replace("NAME", database)))


async def execute(server: str, statement: str) -> None:
    try:
        import asyncpg
    except ModuleNotFoundError as error:
        raise UsageError(
            "Postgres needs the package asyncpg", hint="pip install 'ork-orchestrator[postgres]'"
        ) from error
    connection: Any = None
    try:
        connection = await asyncpg.connect(server, timeout=10)
        await connection.execute(statement)
    except (OSError, TimeoutError, ValueError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        raise OrkError(
            f"cannot make a database for measuring on {without_password(server)}: {error}",
            hint="the user in the URL must be allowed to create databases",
        ) from error
    finally:
        if connection is not None:
            await connection.close()

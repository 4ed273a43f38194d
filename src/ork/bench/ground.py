"""The environment of a scenario: a temporary folder and, on a server, temporary databases."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ork.errors import UsageError
from ork.model.record import Record


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
        from ork.app.temporary_database import TemporaryDatabase

        database = TemporaryDatabase(self.server, "ork_bench")
        asyncio.run(database.create())
        try:
            yield database.url
        finally:
            asyncio.run(database.drop())


def server_of(store: str | None) -> str | None:
    """The Postgres server for a benchmark with `--store`; None for SQLite in a temporary folder."""
    if store is None or store.partition(":")[0] == "sqlite":
        return None
    if store.partition(":")[0] not in ("postgresql", "postgres"):
        raise UsageError(
            f"cannot measure on {store}", hint="--store postgresql://user@host/postgres, or none for SQLite"
        )
    return store

"""Databases that exist only for a measurement or a trial, on a server whose user may create databases."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from ork.errors import OrkError, UsageError
from ork.state.sql import parse_blocks
from ork.state.urls import without_password

SQL_FILE = Path(__file__).with_suffix(".sql")


class TemporaryDatabase:
    """A database with a new name that begins with `prefix`. `server` is the URL of any other database of the server."""

    def __init__(self, server: str, prefix: str) -> None:
        self._server = server
        self.name = f"{prefix}_{os.urandom(6).hex()}"
        self.url = urlunsplit(urlsplit(server)._replace(path=f"/{self.name}"))

    async def create(self) -> None:
        await self._execute("create")

    async def drop(self) -> None:
        await self._execute("drop")

    async def cut_connections(self) -> None:
        """Ends all sessions of this database, whatever they are doing."""
        await self._execute("cut_connections")

    async def _execute(self, statement: str) -> None:
        try:
            import asyncpg
        except ModuleNotFoundError as error:
            raise UsageError(
                "Postgres needs the package asyncpg", hint="pip install 'ork-orchestrator[postgres]'"
            ) from error
        connection: Any = None
        try:
            connection = await asyncpg.connect(self._server, timeout=10)
            await connection.execute(parse_blocks(SQL_FILE.read_text())[statement].replace("NAME", self.name))
        except (OSError, TimeoutError, ValueError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            raise OrkError(
                f"cannot use a temporary database on {without_password(self._server)}: {error}",
                hint="the user in the URL must be allowed to create databases",
            ) from error
        finally:
            if connection is not None:
                await connection.close()

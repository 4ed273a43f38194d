"""The sandbox's own database, and how it is killed. A database that was there before is never touched."""

from __future__ import annotations

import os
import signal
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from random import Random
from time import monotonic
from typing import Protocol

from ork.chaos.postgres_server import PostgresServer, programs
from ork.chaos.sandbox import Sandbox
from ork.errors import OrkError, UsageError

SQLITE, POSTGRES = "sqlite", "postgres"
_URLS = ("postgresql://", "postgres://")
_WRITE_SECONDS = 0.5  # how long a write is waited for


class SandboxDatabase(Protocol):
    """`url` is that of the store; None for the default of the project. `kills_schedulers`: `kill` does."""

    kills_schedulers: bool
    url: str | None

    async def open(self) -> None: ...

    async def kill(self) -> str:
        """Kills it at work, and starts it again. Returns what was done."""
        ...

    def damage(self) -> str | None:
        """What is broken in it; None if nothing is."""
        ...

    async def close(self) -> None: ...


class SqliteDatabase:
    """A file. Its writers are killed in the middle of a write, all of them at once."""

    kills_schedulers = True
    url: str | None = None

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._file = sandbox.project / ".ork" / "ork.db"

    async def open(self) -> None:
        return

    async def kill(self) -> str:
        before, until = self._writes(), monotonic() + _WRITE_SECONDS
        while self._writes() == before and monotonic() < until:
            pass  # no pause: the write that has just begun is the moment to kill
        victims = list(self._sandbox.schedulers)
        for victim in victims:
            victim.send_signal(signal.SIGKILL)
        for victim in victims:
            self._sandbox.kill_scheduler(victim)
            self._sandbox.start_scheduler()
        return f"{len(victims)} schedulers that write"

    def _writes(self) -> tuple[int, int]:
        try:
            facts = os.stat(f"{self._file}-wal")
        except OSError:
            return 0, 0
        return facts.st_mtime_ns, facts.st_size

    def damage(self) -> str | None:
        with closing(sqlite3.connect(self._file)) as connection:
            (answer,) = connection.execute("PRAGMA integrity_check").fetchone()
        return None if answer == "ok" else f"SQLite: {answer}"

    async def close(self) -> None:
        return


class OwnPostgres:
    """A server that is started for this, and killed: at once as a whole, or by one of its backends."""

    kills_schedulers = False
    url: str | None = None

    def __init__(self, sandbox: Sandbox, dice: Random) -> None:
        self._sandbox = sandbox
        self._dice = dice
        self._bin = programs()
        self._server: PostgresServer | None = None

    async def open(self) -> None:
        if self._bin is None:
            raise UsageError(
                "there are no programs of Postgres on this machine",
                hint="install postgresql, name a server with --database postgresql://…, or use --database sqlite",
            )
        self._sandbox.admit_others()  # it does not run as root
        try:
            self._server = PostgresServer(self._bin, within=self._sandbox.folder)
        except OSError as error:
            raise OrkError(f"a Postgres for the sandbox cannot be started: {error}") from error
        self.url = self._server.url("postgres")

    async def kill(self) -> str:
        assert self._server is not None
        backends = _children(self._server.process.pid) if self._server.process is not None else []
        if backends and self._dice.random() < 0.5:
            # The server ends all other sessions, and recovers.
            with suppress(ProcessLookupError):
                os.kill(self._dice.choice(backends), signal.SIGKILL)
            return "a process of Postgres"
        self._server.restart_at_once()
        return "Postgres"

    def damage(self) -> str | None:
        assert self._server is not None
        bad = [line for line in self._server.log().splitlines() if " PANIC: " in line or "deadlock detected" in line]
        return f"Postgres: {bad[0]}" if bad else None

    async def close(self) -> None:
        if self._server is not None:
            self._server.stop()  # its files are removed with the sandbox, or kept with it


class NewDatabase:
    """A new database on a server that was named. The server is not ours: only the sessions of this database are cut."""

    kills_schedulers = False

    def __init__(self, server: str) -> None:
        from ork.app.temporary_database import TemporaryDatabase

        self._database = TemporaryDatabase(server, "ork_chaos")
        self.url: str | None = self._database.url
        self._is_open = False

    async def open(self) -> None:
        await self._database.create()
        self._is_open = True

    async def kill(self) -> str:
        await self._database.cut_connections()
        return "all connections"

    def damage(self) -> str | None:
        return None

    async def close(self) -> None:
        if self._is_open:
            await self._database.drop()


def database_of(kind: str, sandbox: Sandbox, dice: Random) -> SandboxDatabase:
    """`sqlite`, `postgres` (a server of our own), or the URL of a server that gets a new database."""
    if kind == SQLITE:
        return SqliteDatabase(sandbox)
    if kind == POSTGRES:
        return OwnPostgres(sandbox, dice)
    if kind.startswith(_URLS):
        return NewDatabase(kind)
    raise UsageError(
        f"--database {kind} is not a database for a sandbox",
        hint="one of sqlite, postgres, postgresql://user@host/name",
    )


def _children(pid: int) -> list[int]:
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [int(word) for word in text.split()]

"""A real Postgres for tests: one server for each test process, in a folder of its own, gone when the process is.

Where Postgres cannot be had, tests that need it skip and say why.
"""

from __future__ import annotations

import asyncio
import atexit
import functools
import subprocess
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

from ork.chaos.postgres_server import PostgresServer, programs
from ork.chaos.postgres_server import as_user as as_user
from ork.chaos.postgres_server import free_port as free_port

ROOT = Path(__file__).resolve().parent.parent
_numbers = count(1)


class Server(PostgresServer):
    """`log` is what the server said: a deadlock would stand there.

    `inside` is what its command line begins with (see `tests.network`), `host` its address there. A copy of another
    server follows that one as its standby until it is promoted.
    """

    def __init__(
        self,
        bin: Path,
        options: tuple[str, ...] = (),
        *,
        host: str = "127.0.0.1",
        inside: Sequence[str] = (),
        copy_of: Server | None = None,
    ) -> None:
        self._primary = copy_of
        super().__init__(bin, options, host=host, inside=inside)

    def make_data(self) -> None:
        if self._primary is not None:
            source = ["-h", self._primary.host, "-p", self._primary.port, "-U", "ork"]
            self.call("pg_basebackup", *source, "-D", self.data, "-R", "-X", "stream", "--checkpoint=fast", "--no-sync")
            return
        super().make_data()
        with open(self.data / "pg_hba.conf", "a") as rules:
            rules.write("host all,replication all samenet trust\n")

    def promote(self) -> None:
        """The standby takes writes from now on."""
        self.call("pg_ctl", "promote", "-w", "-D", self.data)

    def new_database(self, template: str = "template0") -> str:
        name = f"test{next(_numbers)}"
        self.sql(f"CREATE DATABASE {name} TEMPLATE {template}")
        return name

    def drop_database(self, name: str) -> None:
        self.sql(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def sql(self, text: str, database: str = "postgres") -> str:
        """The answer as psql prints it, without decoration."""
        return self.psql(database, "-c", text)

    def psql(self, database: str, *words: str) -> str:
        done = subprocess.run(
            [self.bin / "psql", "-h", str(self.folder), "-p", str(self.port), "-U", "ork", "-d", database, "-XAtq",
             "-v", "ON_ERROR_STOP=1", *words],
            capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def log_statements(self, database: str) -> None:
        """From now on the log shows every statement of new sessions in this database; `statements` finds them."""
        self.sql(f"ALTER DATABASE {database} SET log_statement = 'all'")

    def statements(self, database: str) -> list[str]:
        lines = self.log().splitlines()
        return [line for line in lines if f" {database} LOG:  " in line and ("statement:" in line or "execute" in line)]


@functools.cache
def _server() -> Server | str:
    """One for the whole test process, or why there is none."""
    bin = programs()
    if bin is None:
        subprocess.run([ROOT / "scripts/components.sh", "postgres"], capture_output=True)
        bin = programs()
    if bin is None:
        return "Postgres is not installed and cannot be (scripts/components.sh postgres)"
    try:
        server = Server(bin)
    except (OSError, subprocess.SubprocessError) as error:
        return f"Postgres cannot be started here: {error}"
    atexit.register(server.remove)
    return server


def server_or_skip() -> Server:
    pytest.importorskip("asyncpg", reason="asyncpg is not installed: nothing is tried on Postgres")
    found = _server()
    if isinstance(found, str):
        pytest.skip(found)
    return found


@functools.cache
def template() -> str:
    """A database that has the schema: copying it is quicker than making it."""
    from ork.state.postgres import migrate

    server = server_or_skip()
    server.sql("CREATE DATABASE ork_template")
    with ThreadPoolExecutor(1) as apart:  # the caller may be inside an event loop already
        apart.submit(asyncio.run, migrate(server.url("ork_template"))).result()
    return "ork_template"


@contextmanager
def fresh_database() -> Iterator[str]:
    """The URL of a database with the newest schema that nobody else uses."""
    server = server_or_skip()
    name = server.new_database(template())
    try:
        yield server.url(name)
    finally:
        server.drop_database(name)

"""A real Postgres for tests: one server for each test process, in a folder of its own, gone when the process is.

Where Postgres cannot be had, tests that need it skip and say why.
"""

from __future__ import annotations

import asyncio
import atexit
import functools
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
_numbers = count(1)


class Server:
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
        self.bin = bin
        self.host = host
        self._inside = inside
        self.folder = Path(tempfile.mkdtemp(prefix="ork-pg-"))
        self.folder.chmod(0o777)
        self.data = self.folder / "data"
        self.log_file = self.folder / "server.log"
        self.port = free_port()
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None
        if copy_of is None:
            self._make_cluster()
        else:
            self._copy(copy_of)
        self.start()

    def start(self) -> None:
        """As a child that dies with us. Postgres refuses to run as root, so root becomes somebody else first."""
        settings = [
            f"-p{self.port}", f"-k{self.folder}", f"-clisten_addresses={self.host}", "-cfsync=off", "-cfull_page_writes=off",
            "-cmax_connections=200", "-cdeadlock_timeout=200ms", "-clog_lock_waits=on", "-clog_line_prefix=%m %d ", *self._options,
        ]  # fmt: skip
        with open(self.log_file, "ab") as log:
            self._process = subprocess.Popen(
                [*self._inside, *as_user(dies_with_us=True), str(self.bin / "postgres"), "-D", str(self.data), *settings],
                stdout=log, stderr=log, cwd=self.folder,
            )  # fmt: skip
        self._wait_until_ready()

    def stop(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """SIGQUIT is the immediate shutdown: everybody is cut off, nothing is finished."""
        assert self._process is not None
        self._process.send_signal(how)
        self._process.wait(30)

    def restart_at_once(self) -> None:
        self.stop()
        self.start()

    def promote(self) -> None:
        """The standby takes writes from now on."""
        self._call("pg_ctl", "promote", "-w", "-D", self.data)

    def remove(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, database: str, *, port: int | None = None) -> str:
        return f"postgresql://ork@{self.host}:{port or self.port}/{database}"

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

    def log(self) -> str:
        return self.log_file.read_text(errors="replace")

    def _make_cluster(self) -> None:
        self._call("initdb", "-D", self.data, "-U", "ork", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "-N")
        with open(self.data / "pg_hba.conf", "a") as rules:
            rules.write("host all,replication all samenet trust\n")

    def _copy(self, primary: Server) -> None:
        source = ["-h", primary.host, "-p", primary.port, "-U", "ork"]
        self._call("pg_basebackup", *source, "-D", self.data, "-R", "-X", "stream", "--checkpoint=fast", "--no-sync")

    def _call(self, program: str, *words: object) -> None:
        done = subprocess.run(
            [*self._inside, *as_user(), str(self.bin / program), *map(str, words)],
            capture_output=True, text=True, cwd=self.folder,
        )  # fmt: skip
        if done.returncode != 0:
            raise OSError(f"{program}: {done.stderr[-500:]}")

    def _wait_until_ready(self) -> None:
        ready = [str(self.bin / "pg_isready"), "-q", "-h", str(self.folder), "-p", str(self.port)]
        for _ in range(600):
            if subprocess.run(ready).returncode == 0:
                return
            if self._process is None or self._process.poll() is not None:
                break
            time.sleep(0.05)
        raise OSError(f"Postgres does not start: {self.log()[-500:]}")


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


def programs() -> Path | None:
    found = shutil.which("pg_ctl")
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name.split(".")[0]))
    if not folders and found:
        folders = [Path(found).resolve().parent]
    return folders[-1] if folders else None


def as_user(dies_with_us: bool = False) -> list[str]:
    user = ["--reuid", "postgres", "--regid", "postgres", "--clear-groups"] if os.getuid() == 0 else []
    death = ["--pdeathsig", "QUIT"] if dies_with_us else []
    return ["setpriv", *user, *death] if user or death else []


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def fresh_database() -> Iterator[str]:
    """The URL of a database with the newest schema that nobody else uses."""
    server = server_or_skip()
    name = server.new_database(template())
    try:
        yield server.url(name)
    finally:
        server.drop_database(name)

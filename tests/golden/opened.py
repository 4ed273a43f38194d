"""A frozen installation of an earlier release, put back on its feet in a folder of this machine."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import ork.executors.processes as machine
from ork.system import system

FOLDER = Path(__file__).parent
RELEASES = sorted(path.name for path in FOLDER.iterdir() if (path / "project").is_dir())


class Opened(NamedTuple):
    """`runs` says which run was in which state when everything was killed."""

    root: Path
    store: str
    runs: dict[str, str]

    def started(self) -> list[str]:
        """One line for each time that user code began."""
        return (self.root / "ledger.txt").read_text().splitlines()


@contextmanager
def opened(release: str, kind: str, root: Path, *, host: str | None = None) -> Iterator[Opened]:
    """As if its processes had been killed a moment ago: on this machine, or on another one called `host`."""
    frozen = FOLDER / release
    shutil.copytree(frozen / "project", root, dirs_exist_ok=True)
    shutil.copytree(frozen / f"{kind}.objects", root / ".ork/objects")
    shutil.copy(frozen / f"{kind}.ledger.txt", root / "ledger.txt")
    runs = json.loads((frozen / f"{kind}.json").read_text())
    dump = (frozen / f"{kind}.sql").read_text()
    for placeholder, text in (("@ROOT@", str(root)), ("@HOST@", host or machine.hostname()),
                              ("@BOOT@", machine.boot_id()), ("@NAMESPACE@", str(machine.pid_namespace()))):  # fmt: skip
        dump = dump.replace(placeholder, text)
    with {"sqlite": _in_sqlite, "postgres": _in_postgres}[kind](dump, root) as store:
        yield Opened(root, store, runs)


@contextmanager
def _in_sqlite(dump: str, root: Path) -> Iterator[str]:
    path = root / ".ork/ork.db"
    raw = sqlite3.connect(path)
    raw.executescript(dump)
    # Leases are in seconds since the boot: on a machine that was booted just now an old one would still be valid.
    soon = system.awake_seconds() + 1
    raw.execute("UPDATE schedulers SET lease_until = min(lease_until, ?)", (soon,))
    raw.commit()
    raw.close()
    yield f"sqlite:{path}"


@contextmanager
def _in_postgres(dump: str, root: Path) -> Iterator[str]:
    from tests.postgres import server_or_skip

    server = server_or_skip()
    database = server.new_database()
    try:
        (root / "dump.sql").write_text(dump)
        (root / "dump.sql").chmod(0o644)
        server.psql(database, "-f", str(root / "dump.sql"))
        yield server.url(database)
    finally:
        server.drop_database(database)

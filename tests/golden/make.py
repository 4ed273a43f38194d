"""Writes the databases of this release as SQL, to be opened by every later one: `python -m tests.golden.make`.

Run it once for each release, never for one that is out: a golden database shows what really is on people's disks.
"""

from __future__ import annotations

import asyncio
import re
import sqlite3
import subprocess
import tempfile
import tomllib
from pathlib import Path

from ork.core.effects import Alert
from ork.model.record import replaced
from ork.model.run import CommandKind, RunStatus
from ork.model.task import AttemptStatus, Failure, FailureKind, InlineOutput, TaskStatus
from ork.model.workflow import Schedule
from ork.state.sqlite import SqliteStore
from ork.state.store import StateStore
from tests.conformance.state_samples import (
    ANN,
    NOW,
    attempt,
    changes,
    claim,
    command,
    later,
    launch_request,
    new_run,
    register,
    task,
    version,
)

FOLDER = Path(__file__).parent


async def fill(store: StateStore) -> None:
    """A finished run, one that failed, one in the middle of things with a command waiting, and one that is pending."""
    flow = version(schedule=Schedule("0 2 * * *", "Europe/Prague"))
    await store.save_version(flow, origin="golden", now=NOW, next_fire=later(3600))
    await store.set_limits({"*": 8, "pool:api": 2})
    await store.create_runs([new_run(flow, id, params={"day": 1}) for id in ("done", "failed", "busy")], NOW)
    await register(store, ANN)
    runs = {claimed.run.id: claimed for claimed in await claim(store)}
    extract = task("extract", TaskStatus.SUCCESS, attempt=1, output=InlineOutput('{"rows":12}'))
    failure = Failure(FailureKind.EXIT, "exit 3", {"tail": ["no"]})
    over = attempt("done", "extract", status=AttemptStatus.SUCCESS, exit_code=0)
    await store.commit(
        ANN,
        [
            changes(runs["done"], run=ends(runs["done"].run, RunStatus.SUCCESS), tasks=(extract,), attempts=(over,),
                    release_ownership=True),
            changes(runs["failed"], run=ends(runs["failed"].run, RunStatus.FAILED), alerts=(Alert(None, failure),),
                    tasks=(task("extract", TaskStatus.FAILED, failure=failure),), release_ownership=True),
            changes(runs["busy"], run=replaced(runs["busy"].run, status=RunStatus.RUNNING, started_at=NOW),
                    tasks=(task("extract"), task("load")), launches=(launch_request("busy", "extract", pool="api"),)),
        ],
        NOW,
    )  # fmt: skip
    await store.submit_command(command("busy", CommandKind.PAUSE), NOW)
    await store.create_runs([new_run(flow, "pending", key="k")], later(5))
    await store.close()


def ends(run, status: RunStatus):
    return replaced(run, status=status, started_at=NOW, finished_at=later(2))


def make_sqlite(release: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ork.db"
        asyncio.run(fill(SqliteStore(path)))
        raw = sqlite3.connect(path)
        (number,), (program,) = (
            raw.execute(f"PRAGMA {name}").fetchone() for name in ("user_version", "application_id")
        )
        head = f"PRAGMA user_version = {number};\nPRAGMA application_id = {program};\n"
        (FOLDER / f"{release}.sqlite.sql").write_text(head + "\n".join(raw.iterdump()) + "\n")
        raw.close()


def make_postgres(release: str) -> None:
    from ork.state.postgres import PostgresStore
    from tests.postgres import fresh_database, server_or_skip

    server = server_or_skip()
    with fresh_database() as url:
        asyncio.run(fill(PostgresStore(url)))
        words = ["--inserts", "--no-owner", "--no-privileges", "--no-comments", "-h", str(server.folder), "-U", "ork"]
        dumped = subprocess.check_output(
            [server.bin / "pg_dump", *words, "-p", str(server.port), url.rsplit("/", 1)[1]], text=True
        )
    # What a newer pg_dump writes for a newer psql alone.
    kept = [line for line in dumped.splitlines() if not re.match(r"\\(un)?restrict |--|SET transaction_timeout", line)]
    (FOLDER / f"{release}.postgres.sql").write_text(re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip() + "\n")


if __name__ == "__main__":
    project = tomllib.loads((FOLDER.parent.parent / "pyproject.toml").read_text())["project"]
    make_sqlite(project["version"])
    make_postgres(project["version"])

"""Databases of every release so far are opened, brought up to date and worked on."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from ork.model.ids import RunId
from ork.model.run import RunStatus
from ork.model.task import InlineOutput
from ork.state.sqlite import SqliteStore, db_status
from ork.state.store import StateStore
from tests.conformance.state_samples import ANN, BEN, claim, register
from tests.postgres import server_or_skip

GOLDEN = Path(__file__).resolve().parents[2] / "golden"


def releases(kind: str) -> list[Path]:
    return sorted(GOLDEN.glob(f"*.{kind}.sql"))


async def check(store: StateStore) -> None:
    """What `tests/golden/make.py` put there is there, and the work goes on."""
    found = {id: await store.get_run(RunId(id)) for id in ("done", "failed", "busy", "pending")}
    assert {id: run.status for id, run in found.items()} == {
        "done": RunStatus.SUCCESS, "failed": RunStatus.FAILED, "busy": RunStatus.RUNNING, "pending": RunStatus.PENDING,
    }  # fmt: skip
    assert found["done"].params == {"day": 1}
    assert (await store.run_updates(RunId("done"))).tasks[0].output == InlineOutput('{"rows":12}')
    assert (await store.list_alerts(RunId("failed")))[0].failure.message == "exit 3"
    assert len(await store.signing_key()) == 32
    (entry,) = await store.list_workflows()
    assert entry.schedule.timezone == "Europe/Prague"
    await register(store, BEN)
    await store.expire([ANN])
    runs = {claimed.run.id: claimed for claimed in await claim(store, BEN)}
    assert set(runs) == {"busy", "pending"}
    assert [attempt.pool for attempt in runs["busy"].attempts] == ["api"]
    assert [waiting.kind.value for waiting in await store.pending_commands(RunId("busy"))] == ["pause"]
    assert {use.name: use.used for use in await store.limit_use()} == {"*": 1, "pool:api": 1}
    await store.close()


def test_there_is_a_database_of_each_kind_for_every_release() -> None:
    assert [path.name.split(".sqlite")[0] for path in releases("sqlite")] == [
        path.name.split(".postgres")[0] for path in releases("postgres")
    ]
    assert releases("sqlite")


@pytest.mark.parametrize("dump", releases("sqlite"), ids=lambda path: path.name)
def test_a_sqlite_database_of_that_release_is_opened_and_worked_on(dump: Path, tmp_path: Path) -> None:
    path = tmp_path / "ork.db"
    raw = sqlite3.connect(path)
    raw.executescript(dump.read_text())
    raw.close()
    asyncio.run(check(SqliteStore(path)))
    status = db_status(str(path))
    assert status.current == status.known


@pytest.mark.parametrize("dump", releases("postgres"), ids=lambda path: path.name)
def test_a_postgres_database_of_that_release_is_opened_and_worked_on(dump: Path) -> None:
    server = server_or_skip()
    from ork.state.postgres import PostgresStore
    from ork.state.postgres import db_status as postgres_status

    database = server.new_database()
    try:
        server.psql(database, "-f", str(dump))
        asyncio.run(check(PostgresStore(server.url(database))))
        status = asyncio.run(postgres_status(server.url(database)))
        assert status.current == status.known
    finally:
        server.drop_database(database)

"""Creates histories to measure in: millions of finished runs with their tasks and attempts, written by the store's own
SQL."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

from ork.model.record import Record
from ork.model.workflow import Version
from ork.state.sql import parse_blocks

SECONDS_APART = 20
ADDS = ("add_runs", "add_tasks", "add_attempts", "add_commands", "add_alerts")


class Past(Record):
    """Finished runs of a version, numbered from the oldest; the newest of `most` ended just now."""

    version: Version
    most: int

    @property
    def begin(self) -> float:
        return float(int(time.time()) - (self.most + 1) * SECONDS_APART)


def statements(store: str) -> dict[str, str]:
    return parse_blocks((Path(__file__).parent / f"{store}.sql").read_text())


def add_to_file(path: str, past: Past, first: int, last: int) -> None:
    """Add the runs from number `first` up to `last` (exclusive) to the SQLite file, which must not be written to
    meanwhile."""
    sql = statements("sqlite")
    values = {
        "first": first,
        "last": last,
        "workflow": past.version.workflow.name,
        "version": past.version.id,
        "begin": int(past.begin),
    }
    db = sqlite3.connect(path, isolation_level=None, timeout=60)
    try:
        db.executescript(sql["settings"])
        db.execute(sql["begin"])
        indexes = db.execute(sql["indexes"]).fetchall()
        for name, _ in indexes:
            db.execute(sql["drop_index"].replace("NAME", name))
        for statement in ("numbers", *ADDS, "forget_numbers", "count_changes"):
            db.execute(sql[statement], values)
        for _, definition in indexes:
            db.execute(definition)
        db.execute(sql["commit"])
    finally:
        db.close()


async def add_to_server(url: str, past: Past, first: int, last: int) -> None:
    """Add the same to the Postgres database of that URL."""
    import asyncpg

    sql = statements("postgres")
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(sql["settings"])
        async with connection.transaction():
            await connection.execute(
                sql["numbers"], first, last, past.version.workflow.name, past.version.id, past.begin
            )
            for statement in (*ADDS, "forget_numbers"):
                await connection.execute(sql[statement])
            await connection.execute(sql["count_changes"], last)
        await connection.execute(sql["gather_statistics"])
    finally:
        await connection.close()

"""The floor of the engine on Postgres: only its rows, written by one connection and four prepared statements.

python -m ork.bench.floors.rows_on_postgres COUNT URL    prints the seconds it took
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from time import perf_counter

import asyncpg

from ork.state.sql import parse_blocks

BATCH = 100
SQL = parse_blocks(Path(__file__).with_name("postgres.sql").read_text())


async def rows(url: str, count: int) -> float:
    """Seconds to create, dispatch, start and finish tasks, a hundred per request."""
    names = [str(n) for n in range(count)]
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(SQL["settings"])
        await connection.execute(SQL["tables"])
        create, *changes = [await connection.prepare(SQL[name]) for name in ("create", "dispatch", "start", "finish")]
        begin = perf_counter()
        await create.fetch(names)
        for first in range(0, count, BATCH):
            for change in changes:
                await change.fetch(names[first : first + BATCH])
        return perf_counter() - begin
    finally:
        await connection.close()


if __name__ == "__main__":
    print(asyncio.run(rows(sys.argv[2], int(sys.argv[1]))))

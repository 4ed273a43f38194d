"""The floor of the engine on Postgres: its rows alone, by one connection.

python -m ork.bench.floors.rows_on_postgres COUNT URL    prints the seconds it took
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

import asyncpg

from ork.state.sql import parse_blocks

BATCH = 100
SQL = parse_blocks(Path(__file__).with_name("postgres.sql").read_text())


async def rows(url: str, count: int) -> float:
    """Seconds for tasks that are created, dispatched, running and finished, a hundred to a transaction."""
    names = [str(n) for n in range(count)]
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(SQL["tables"])
        begin = perf_counter()
        await write(connection, names, "create_task")
        for first in range(0, count, BATCH):
            batch = names[first : first + BATCH]
            await write(connection, batch, "dispatch_task", "dispatch_attempt")
            await write(connection, batch, "start_task", "start_attempt")
            await write(connection, batch, "finish_task", "finish_attempt")
        return perf_counter() - begin
    finally:
        await connection.close()


async def write(connection: asyncpg.Connection, names: Sequence[str], *statements: str) -> None:
    """One transaction."""
    async with connection.transaction():
        for statement in statements:
            await connection.execute(SQL[statement], names)


if __name__ == "__main__":
    print(asyncio.run(rows(sys.argv[2], int(sys.argv[1]))))

"""Several handles of one process on one file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from ork.state.sqlite import SqliteStore

LEAVE_SOMETHING = """
import asyncio, sys
from datetime import UTC, datetime
from ork.state.sqlite import SqliteStore

async def main():
    store = SqliteStore(sys.argv[1])
    await store.set_limits({"*": int(sys.argv[2])})
    await store.close()

asyncio.run(main())
"""


async def limit(store: SqliteStore) -> int:
    return (await store.limit_use())[0].slots


def test_opening_another_handle_does_not_let_other_processes_take_the_log_away(tmp_path: Path) -> None:
    import asyncio

    async def check() -> None:
        path = tmp_path / "ork.db"
        first = SqliteStore(path)
        second = SqliteStore(path)
        for number in (3, 4):
            subprocess.run([sys.executable, "-c", LEAVE_SOMETHING, str(path), str(number)], check=True)
            assert (await limit(first), await limit(second)) == (number, number)
        await first.set_limits({"*": 5})
        assert (await limit(second), await limit(SqliteStore(path))) == (5, 5)
        await first.close()
        await second.close()

    asyncio.run(check())

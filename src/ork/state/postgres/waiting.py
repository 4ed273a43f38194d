"""Waits for commits of other handles, without statements while nothing happens.

Every commit that concerns others notifies the channel `ork` and increments a count in the table `pulse`. A notification
is enough to report a change. Because notifications can be lost, the count is read as well: after every reconnection
(once we listen again, so that no change is missed), and from time to time, less often while nothing changes.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import asyncpg

from ork.state.postgres.database import Database
from ork.state.postgres.failures import DRIVER_ERRORS, store_error
from ork.state.postgres.sql import sql

CHANNEL = "ork"
FIRST_LOOK_SECONDS = 60.0
LAST_LOOK_SECONDS = 600.0
POOLER_LOOK_SECONDS = 5.0  # a transaction pooler does not support LISTEN
ANSWER_SECONDS = 30.0
_CLOSE_SECONDS = 2.0


class ChangeListener:
    """The listener of one handle, created with its own connection when the handle first waits. Only one caller may wait
    at a time."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._connection: asyncpg.Connection | None = None
        self._notified = asyncio.Event()
        self._seen = 0  # commits of other handles: the first look reports earlier ones as a change
        self._pause = FIRST_LOOK_SECONDS
        self._next_look = 0.0

    async def wait(self, timeout: float | None) -> bool:
        loop = asyncio.get_running_loop()
        deadline = None if timeout is None else loop.time() + timeout
        looks_anyway = timeout is not None and timeout <= 0  # too short for a notification to arrive
        while True:
            is_new = await self._listen()
            was_notified = self._notified.is_set()
            self._notified.clear()
            if is_new or looks_anyway or loop.time() >= self._next_look:
                if await self._look():
                    return True
                looks_anyway = False
            elif was_notified:
                return True  # the count is not read again, so the next look may report this change a second time
            until = self._next_look if deadline is None else min(self._next_look, deadline)
            if deadline is not None and loop.time() >= deadline:
                return False
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, until - loop.time())):
                    await self._notified.wait()

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None and not connection.is_closed():
            with suppress(*DRIVER_ERRORS):
                await connection.close(timeout=_CLOSE_SECONDS)

    async def _listen(self) -> bool:
        """Connect and listen if needed. True if it had to connect: notifications before were missed."""
        if self._database.address.behind_pooler or (self._connection and not self._connection.is_closed()):
            return False
        try:
            connection = await self._database.hosts.connect("listener")
            connection.add_termination_listener(lambda _: self._notified.set())
            self._connection = connection
            async with asyncio.timeout(ANSWER_SECONDS):
                await connection.add_listener(CHANNEL, self._on_notification)
        except DRIVER_ERRORS as error:
            self._cut_off()
            raise store_error(error, self._database.address.shown) from error
        except BaseException:
            self._cut_off()
            raise
        return True

    def _on_notification(self, _connection: Any, _pid: int, _channel: str, handle: object) -> None:
        if handle != self._database.handle:
            self._notified.set()

    async def _look(self) -> bool:
        """Return whether another handle has committed since the last look."""
        others = await self._count() - self._database.own_changes
        happened, self._seen = others != self._seen, others
        self._plan_next_look(happened)
        return happened

    def _plan_next_look(self, happened: bool) -> None:
        if self._database.address.behind_pooler:
            self._pause = POOLER_LOOK_SECONDS
        else:
            self._pause = FIRST_LOOK_SECONDS if happened else min(self._pause * 2, LAST_LOOK_SECONDS)
        self._next_look = asyncio.get_running_loop().time() + self._pause

    async def _count(self) -> int:
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await self._read_count()
        except DRIVER_ERRORS as error:
            self._cut_off()
            raise store_error(error, self._database.address.shown) from error
        except BaseException:
            self._cut_off()
            raise

    async def _read_count(self) -> int:
        if self._connection is None:
            async with self._database.reading() as session:
                return int((await session.rows("feel_pulse"))[0][0])
        self._database.statements += 1
        return int(await self._connection.fetchval(sql("feel_pulse")))

    def _cut_off(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.terminate()

"""Waiting for what other handles commit, at no cost while nothing happens.

Every commit that others may care about notifies the channel `ork` and counts in the table `pulse`. The notification brings
the news, and is believed; the count is the truth. It is read after every reconnection (once we listen again, so that
nothing falls between), and now and then, ever more rarely while nothing is found.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import asyncpg

from ork.state.postgres.database import Database
from ork.state.postgres.failures import TROUBLE, store_error
from ork.state.postgres.sql import sql

CHANNEL = "ork"
FIRST_LOOK_SECONDS = 60.0
LAST_LOOK_SECONDS = 600.0
POOLER_LOOK_SECONDS = 5.0  # nobody can listen through a transaction pooler
ANSWER_SECONDS = 30.0
_CLOSE_SECONDS = 2.0


class Listener:
    """One for a handle, made when it first waits, with a connection of its own. One caller waits at a time."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._connection: asyncpg.Connection | None = None
        self._stirred = asyncio.Event()
        self._seen = 0  # of others: what was committed before the first look counts as news
        self._pause = FIRST_LOOK_SECONDS
        self._next_look = 0.0

    async def wait(self, timeout: float | None) -> bool:
        loop = asyncio.get_running_loop()
        deadline = None if timeout is None else loop.time() + timeout
        looks_anyway = timeout is not None and timeout <= 0  # there is no time for a notification to arrive
        while True:
            is_new = await self._listen()
            was_stirred = self._stirred.is_set()
            self._stirred.clear()
            if is_new or looks_anyway or loop.time() >= self._next_look:
                if await self._look():
                    return True
                looks_anyway = False
            elif was_stirred:
                return True  # the count stays as it was last read: the next look may find what we have told of already
            until = self._next_look if deadline is None else min(self._next_look, deadline)
            if deadline is not None and loop.time() >= deadline:
                return False
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, until - loop.time())):
                    await self._stirred.wait()

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None and not connection.is_closed():
            with suppress(*TROUBLE):
                await connection.close(timeout=_CLOSE_SECONDS)

    async def _listen(self) -> bool:
        """True if it had to connect anew: what happened meanwhile was not heard."""
        if self._database.address.behind_pooler or (self._connection and not self._connection.is_closed()):
            return False
        try:
            connection = await self._database.hosts.connect("listener")
            connection.add_termination_listener(lambda _: self._stirred.set())
            self._connection = connection
            async with asyncio.timeout(ANSWER_SECONDS):
                await connection.add_listener(CHANNEL, self._hear)
        except TROUBLE as error:
            self._cut_off()
            raise store_error(error, self._database.address.shown) from error
        except BaseException:
            self._cut_off()
            raise
        return True

    def _hear(self, _connection: Any, _pid: int, _channel: str, handle: object) -> None:
        if handle != self._database.handle:
            self._stirred.set()

    async def _look(self) -> bool:
        """Has anybody else committed something since the last look?"""
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
                return await self._feel_pulse()
        except TROUBLE as error:
            self._cut_off()
            raise store_error(error, self._database.address.shown) from error
        except BaseException:
            self._cut_off()
            raise

    async def _feel_pulse(self) -> int:
        if self._connection is None:
            async with self._database.reading() as session:
                return int((await session.rows("feel_pulse"))[0][0])
        self._database.statements += 1
        return int(await self._connection.fetchval(sql("feel_pulse")))

    def _cut_off(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.terminate()

"""PgQueuer, a plain queue on Postgres: jobs in the process of the worker; in the chain each job puts the next one in."""

import asyncio
import os
import sys
import time
from datetime import timedelta

import asyncpg
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.queries import Queries

WORK, COUNT = sys.argv[1], int(sys.argv[2])


async def main():
    connection = await asyncpg.connect(os.environ["PEER_POSTGRES"])
    driver = AsyncpgDriver(connection)
    queries = Queries(driver)
    await queries.uninstall()
    await queries.install()
    worker, done = PgQueuer(driver), 0

    @worker.entrypoint("light")
    async def light(_job):
        nonlocal done
        done += 1
        if done == COUNT:
            worker.shutdown.set()
        elif WORK == "chain":
            await queries.enqueue(["light"], [None], [0])

    number = 1 if WORK == "chain" else COUNT
    begin = time.perf_counter()
    await queries.enqueue(["light"] * number, [None] * number, [0] * number)
    await worker.run(dequeue_timeout=timedelta(seconds=1), batch_size=100)
    print("seconds", time.perf_counter() - begin)
    assert done == COUNT


asyncio.run(main())

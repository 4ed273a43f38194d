"""Migrations: numbered, forward only, all applied in one transaction under one lock."""

from __future__ import annotations

import os
from collections.abc import Sequence

import asyncpg

from ork.errors import StoreError
from ork.state.postgres.address import Address, read_address
from ork.state.postgres.connection import Hosts
from ork.state.postgres.failures import DRIVER_ERRORS, store_error
from ork.state.postgres.sql import sql
from ork.state.sql import Migration, SchemaStatus, load_migrations, newest_number, refuse_newer

FOLDER = os.path.join(os.path.dirname(__file__), "migrations")


def known_schema() -> int:
    return newest_number(FOLDER)


async def db_status(url: str) -> SchemaStatus:
    """The schema of the database. Creates and changes nothing."""
    address = read_address(url)
    connection = await _connect(address)
    try:
        return SchemaStatus(await _current(connection, address.shown), known_schema())
    except DRIVER_ERRORS as error:
        raise store_error(error, address.shown) from error
    finally:
        connection.terminate()


async def migrate(url: str) -> SchemaStatus:
    """Migrate the database to the newest schema."""
    address = read_address(url)
    connection = await _connect(address)
    try:
        await bring_up_to_date(connection, address.shown)
        return SchemaStatus(await _current(connection, address.shown), known_schema())
    except DRIVER_ERRORS as error:
        raise store_error(error, address.shown) from error
    finally:
        connection.terminate()


async def bring_up_to_date(
    connection: asyncpg.Connection, store: str, migrations: Sequence[Migration] | None = None
) -> SchemaStatus:
    """Migrate to the newest schema and return the status found before. Two reads if nothing has to be done. Several
    processes may do this at the same time."""
    known = known_schema() if migrations is None else migrations[-1].number
    status = SchemaStatus(await _current(connection, store), known)
    refuse_newer(store, status)
    if status.current < status.known:
        async with connection.transaction():
            await _apply(connection, store, load_migrations(FOLDER) if migrations is None else migrations)
    return status


async def _apply(connection: asyncpg.Connection, store: str, migrations: Sequence[Migration]) -> None:
    await connection.execute(sql("take_your_time"))
    await connection.fetch(sql("lock_schema"))
    # Read again under the lock: another process may have migrated while this one waited.
    current = await _current(connection, store)
    for migration in migrations:
        if migration.number > current:
            await connection.execute(migration.text)
            await connection.execute(sql("set_schema_number"), migration.number)
    if current == 0:
        await connection.execute(sql("make_signing_key"), os.urandom(32))


async def _current(connection: asyncpg.Connection, store: str) -> int:
    has_schema, has_number = await connection.fetchrow(sql("find_schema"))
    if has_number:
        return int(await connection.fetchval(sql("schema_number")))
    if has_schema:
        raise StoreError(
            f"The schema `ork` in {store} belongs to another program.", hint="Choose another database with --store."
        )
    return 0


async def _connect(address: Address) -> asyncpg.Connection:
    try:
        return await Hosts(address).connect("schema")
    except (*DRIVER_ERRORS, ValueError) as error:
        raise store_error(error, address.shown) from error

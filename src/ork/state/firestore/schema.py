"""The versions of stored documents: `meta/schema` has the database's, `v` that of each run's document.

An upgrade is a step in `STEPS`: from the fields of a document of version N to those of version N + 1. Documents are upgraded when they are read, and
written as the newest version with their next change; `migrate` writes the rest. An older Ork refuses a database with a newer version.
"""

from __future__ import annotations

import importlib.resources
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from google.api_core.exceptions import FailedPrecondition

from ork.state.firestore.address import read_address
from ork.state.firestore.failures import TROUBLE, ConflictError, UnansweredError, store_error
from ork.state.firestore.upgrades import newest_version, upgraded
from ork.state.firestore.values import SERVER_TIME
from ork.state.firestore.wire import Put, Query, Wire
from ork.state.sql import SchemaStatus, refuse_newer

SCHEMA = "meta/schema"
_DOCTOR = "meta/doctor"
_PAGE = 100
_TRIES = 10


def index_file() -> str:
    """The composite indexes and unindexed fields, as `firebase deploy` and Terraform read them."""
    return importlib.resources.files(__package__).joinpath("firestore.indexes.json").read_text("utf-8")


async def read_status(wire: Wire) -> SchemaStatus:
    doc = await wire.get(SCHEMA)
    return SchemaStatus(0 if doc is None else doc.fields["version"], newest_version())


async def open_schema(wire: Wire, name: str) -> None:
    """A new database gets its version; one with a newer version is refused."""
    status = await read_status(wire)
    refuse_newer(name, status)
    if status.current == 0:
        await _write_version(wire)


async def _write_version(wire: Wire) -> None:
    for _ in range(_TRIES):
        try:
            await wire.commit([Put(SCHEMA, {"version": newest_version()})])
        except (ConflictError, UnansweredError):
            continue
        return
    raise TimeoutError


async def _upgrade_runs(wire: Wire) -> None:
    """Page by page, each document only if nobody wrote it meanwhile; who did wrote the newest version."""
    while True:
        docs = await wire.query(Query("runs", (("v", "<", newest_version()),), (), _PAGE))
        for doc in docs:
            try:
                await wire.commit([Put(doc.path, upgraded(doc.fields), doc.time)])
            except (ConflictError, UnansweredError):
                continue
        if len(docs) < _PAGE:
            return


@asynccontextmanager
async def _connected(url: str, emulator: str | None) -> AsyncIterator[tuple[Wire, str]]:
    """A channel of its own, and the database's name. Failures are told as StoreError."""
    address = read_address(url, emulator)
    try:
        wire = Wire(address)
        try:
            yield wire, address.shown
        finally:
            await wire.close()
    except (ConflictError, UnansweredError, *TROUBLE) as error:
        raise store_error(error, address.shown) from error


async def db_status(url: str, *, emulator: str | None = None) -> SchemaStatus:
    async with _connected(url, emulator) as (wire, _):
        return await read_status(wire)


async def migrate(url: str, *, emulator: str | None = None) -> SchemaStatus:
    """Every document has the newest version when this returns. Schedulers of this version may go on working."""
    async with _connected(url, emulator) as (wire, name):
        status = await read_status(wire)
        refuse_newer(name, status)
        if status.current:
            await _upgrade_runs(wire)
        await _write_version(wire)
        return await read_status(wire)


async def check_access(url: str, *, emulator: str | None = None) -> None:
    """StoreError that says what is missing: credentials, the database, or the permission to read or to write."""
    async with _connected(url, emulator) as (wire, _):
        await wire.get(SCHEMA)
        await wire.commit([Put(_DOCTOR, {"at": SERVER_TIME})])
        await wire.commit([Put(_DOCTOR, None)])


async def missing_indexes(url: str, *, emulator: str | None = None) -> list[str]:
    """The composite indexes that the database lacks, or that are not ready: for each a query is sent that needs it."""
    missing = []
    async with _connected(url, emulator) as (wire, _):
        for index in json.loads(index_file())["indexes"]:
            names = [("-" if field["order"] == "DESCENDING" else "") + field["fieldPath"] for field in index["fields"]]
            where = tuple((name, "==", "doctor") for name in names[:-1])
            try:
                await wire.query(Query(index["collectionGroup"], where, (names[-1],), 1, ()))
            except FailedPrecondition:
                missing.append(f"{index['collectionGroup']} ({', '.join(names)})")
    return missing

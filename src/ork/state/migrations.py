"""Numbered steps from one schema to the next, kept as files `0001_name.sql`; forward only."""

from __future__ import annotations

import os
from typing import NamedTuple

from ork.errors import StoreError


class SchemaStatus(NamedTuple):
    """The schema a database has (0: none yet) and the newest this code knows."""

    current: int
    known: int


class Migration(NamedTuple):
    number: int
    text: str


def newest_number(folder: str) -> int:
    return max(int(name[:4]) for name in os.listdir(folder) if name.endswith(".sql"))


def load_migrations(folder: str) -> list[Migration]:
    migrations = []
    for name in sorted(os.listdir(folder)):
        if name.endswith(".sql"):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                migrations.append(Migration(int(name[:4]), file.read()))
    return migrations


def refuse_newer(store: str, status: SchemaStatus) -> None:
    if status.current > status.known:
        raise StoreError(
            f"The store {store} has schema {status.current}; this Ork knows schemas up to {status.known}.",
            hint="A newer Ork has been here: upgrade this one, or choose another store with --store.",
        )

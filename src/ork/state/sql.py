"""SQL in files: named blocks, read when the first one is needed, and numbered migrations.

Migrations are the steps from one schema to the next, kept as files `0001_name.sql`; forward only.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from ork.errors import StoreError

_MARK = "-- name: "


class Queries(dict[str, str]):
    """The blocks of one store. Returns the same text object each time, so that caches of prepared statements find
    it."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __missing__(self, name: str) -> str:
        if not self:
            for file in sorted(os.listdir(self.folder)):
                with open(os.path.join(self.folder, file), encoding="utf-8") as text:
                    self.update(parse_blocks(text.read()))
            return self[name]
        raise KeyError(name)


def parse_blocks(text: str) -> dict[str, str]:
    """The blocks by name, without comments."""
    blocks: dict[str, str] = {}
    for block in text.split(_MARK)[1:]:
        name, _, body = block.partition("\n")
        lines = [line for line in body.splitlines() if not line.lstrip().startswith("--")]
        blocks[name.strip()] = "\n".join(lines).strip()
    return blocks


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

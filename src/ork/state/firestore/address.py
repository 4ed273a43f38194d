"""`firestore://project/database`: which database a store's URL names."""

from __future__ import annotations

import re
from typing import NamedTuple

from ork.errors import UsageError

DEFAULT_DATABASE = "(default)"
_PROJECT = re.compile(r"[a-z][a-z0-9-]{4,62}")
_DATABASE = re.compile(r"\(default\)|[a-z][a-z0-9-]{2,62}")


class Address(NamedTuple):
    """`emulator` is the host and port of an emulator that stands in for the service."""

    project: str
    database: str
    emulator: str | None = None

    @property
    def shown(self) -> str:
        return f"firestore://{self.project}/{self.database}"

    @property
    def resource(self) -> str:
        return f"projects/{self.project}/databases/{self.database}"


def read_address(url: str, emulator: str | None = None) -> Address:
    """UsageError if the URL does not name a project and a database."""
    project, _, database = url.removeprefix("firestore://").partition("/")
    address = Address(project, database or DEFAULT_DATABASE, emulator)
    if not _PROJECT.fullmatch(address.project) or not _DATABASE.fullmatch(address.database):
        raise UsageError(f"cannot use the store {url}", hint="write firestore://project/database")
    return address

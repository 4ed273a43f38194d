"""The embedded store: one SQLite file, any number of processes on one machine."""

from __future__ import annotations

from ork.state.sqlite.schema import SchemaStatus, db_status, migrate
from ork.state.sqlite.store import SqliteStore

__all__ = ["SchemaStatus", "SqliteStore", "db_status", "migrate"]

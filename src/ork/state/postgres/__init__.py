"""The store of a team: a Postgres database, any number of schedulers on any number of machines."""

from __future__ import annotations

from ork.state.postgres.schema import db_status, migrate
from ork.state.postgres.store import PostgresStore

__all__ = ["PostgresStore", "db_status", "migrate"]

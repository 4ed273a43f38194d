"""The store of an installation without a server: documents in Firestore, any number of schedulers that come and go."""

from __future__ import annotations

from ork.state.firestore.schema import check_access, db_status, index_file, migrate, missing_indexes
from ork.state.firestore.store import FirestoreStore

__all__ = ["FirestoreStore", "check_access", "db_status", "index_file", "migrate", "missing_indexes"]

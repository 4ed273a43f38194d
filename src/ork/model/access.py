"""Roles, tokens and the audit log."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from ork.model.record import Record


class Role(StrEnum):
    """Of viewer, operator and admin, each includes the permissions of those before it; scheduler is for programs."""

    VIEWER = "viewer"  # reads
    OPERATOR = "operator"  # starts and stops runs, approves
    ADMIN = "admin"  # deploys code, manages tokens
    SCHEDULER = "scheduler"  # reads and writes the documents of all attempts, and nothing else

    def includes(self, other: Role) -> bool:
        if Role.SCHEDULER in (self, other):
            return self is other
        return _ORDER.index(self) >= _ORDER.index(other)


_ORDER = list(Role)


class Token(Record):
    """A token as it is stored: only the digest, never its text."""

    id: str
    name: str
    role: Role
    digest: str
    created_at: datetime
    revoked_at: datetime | None = None
    expires_at: datetime | None = None  # None: never
    last_used_at: datetime | None = None  # accurate to a few minutes
    unreadable: str | None = None  # why its row cannot be decoded; such a token is rejected

    def is_live(self, now: datetime) -> bool:
        """Neither revoked nor expired."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


class AuditEntry(Record):
    """One change by a person: who (`by`), what (`run.cancel`), on what, and further details as JSON.

    Entries of HTTP requests also have the token id and the client's address.
    """

    at: datetime
    by: str
    action: str
    subject: str
    detail: str | None = None
    id: str = ""  # assigned by the store, ascending
    token: str | None = None
    address: str | None = None

"""Who may do what through the server, and the record of what people did."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from ork.model.record import Record


class Role(StrEnum):
    """Each may do all that the ones before it may."""

    VIEWER = "viewer"  # looks
    OPERATOR = "operator"  # starts, stops and decides
    ADMIN = "admin"  # says what code runs, and who may do what

    def includes(self, other: Role) -> bool:
        return _ORDER.index(self) >= _ORDER.index(other)


_ORDER = list(Role)


class Token(Record):
    """A token as it is kept: its text is known to its holder alone, here is only its digest."""

    id: str
    name: str
    role: Role
    digest: str
    created_at: datetime
    revoked_at: datetime | None = None
    expires_at: datetime | None = None  # None: never
    last_used_at: datetime | None = None  # give or take a few minutes
    unreadable: str | None = None  # why its row cannot be decoded; such a token lets nobody in

    def is_live(self, now: datetime) -> bool:
        """Neither revoked nor expired."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


class AuditEntry(Record):
    """One change that a person made: who, what (`run.cancel`), to whom, and whatever else is worth keeping as JSON.

    What came over HTTP also has the id of the token and the client's address.
    """

    at: datetime
    by: str
    action: str
    subject: str
    detail: str | None = None
    id: int = 0  # given by the store; later entries have higher ones
    token: str | None = None
    address: str | None = None

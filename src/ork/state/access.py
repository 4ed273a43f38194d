"""The verbs of the state store for who may do what, and who did what; none of them wakes anybody.

A part of `ork.state.store.StateStore`; every sentence is a test in tests/conformance.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ork.model.access import AuditEntry, Token


class AccessVerbs(Protocol):
    async def add_token(self, token: Token) -> None:
        """The token is durable. A digest or id that exists already is RefusedError."""
        ...

    async def find_token(self, digest: str) -> Token | None:
        """Also one that has been revoked: it says so."""
        ...

    async def list_tokens(self) -> tuple[Token, ...]:
        """Oldest first, revoked ones included."""
        ...

    async def live_tokens(self, digests: frozenset[str], now: datetime) -> frozenset[str]:
        """Those of the digests whose tokens are neither revoked nor expired. One statement, however many."""
        ...

    async def revoke_token(self, id: str, now: datetime) -> bool:
        """False if there is no such token or it has been revoked before."""
        ...

    async def rotate_token(self, id: str, successor: Token, until: datetime, now: datetime) -> bool:
        """Adds the successor and lets the token expire at `until`, or earlier if it was to; both or neither.

        False if there is no such token that is neither revoked nor expired. A digest or id of the successor that exists
        already is RefusedError.
        """
        ...

    async def mark_token_used(self, id: str, now: datetime) -> None:
        """The token's `last_used_at` is at least `now`."""
        ...

    async def record(self, entry: AuditEntry, keep: int | None = None) -> None:
        """The entry is durable, and later than all before it. With `keep`, only that many of the newest entries with
        the same action stay."""
        ...

    async def list_audit(self, limit: int = 50, before: int | None = None) -> tuple[AuditEntry, ...]:
        """Newest first; `before` is the id of the last entry of the previous page."""
        ...

"""Tokens and the audit log, in memory."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from ork.model.access import AuditEntry, Token
from ork.model.record import replaced
from ork.state.refusals import token_exists
from ork.state.rows import number_of, text_of

if TYPE_CHECKING:
    from ork.state.memory.rows import Shared


class AccessVerbs:
    """A part of the memory store."""

    def _used(self) -> Shared:
        raise AssertionError("the store defines this")

    async def add_token(self, token: Token) -> None:
        tokens = self._used().tokens
        if token.id in tokens or any(known.digest == token.digest for known in tokens.values()):
            raise token_exists(token.name)
        tokens[token.id] = token

    async def find_token(self, digest: str) -> Token | None:
        return next((token for token in self._used().tokens.values() if token.digest == digest), None)

    async def list_tokens(self) -> tuple[Token, ...]:
        return tuple(sorted(self._used().tokens.values(), key=lambda token: (token.created_at, token.id)))

    async def live_tokens(self, digests: frozenset[str], now: datetime) -> frozenset[str]:
        tokens = self._used().tokens.values()
        return frozenset(token.digest for token in tokens if token.digest in digests and token.is_live(now))

    async def revoke_token(self, id: str, now: datetime) -> bool:
        tokens = self._used().tokens
        if id not in tokens or tokens[id].revoked_at is not None:
            return False
        tokens[id] = replaced(tokens[id], revoked_at=now)
        return True

    async def rotate_token(self, id: str, successor: Token, until: datetime, now: datetime) -> bool:
        tokens = self._used().tokens
        token = tokens.get(id)
        if token is None or not token.is_live(now):
            return False
        await self.add_token(successor)
        tokens[id] = replaced(token, expires_at=min(until, token.expires_at or until))
        return True

    async def mark_token_used(self, id: str, now: datetime) -> None:
        tokens = self._used().tokens
        token = tokens.get(id)
        if token is not None:
            tokens[id] = replaced(token, last_used_at=max(now, token.last_used_at or now))

    async def forget_tokens(self, name: str, before: datetime) -> int:
        tokens = self._used().tokens
        gone = [
            each.id for each in tokens.values() if each.name == name and each.expires_at and each.expires_at < before
        ]
        for id in gone:
            del tokens[id]
        return len(gone)

    async def use_once(self, key: str, until: datetime, now: datetime) -> bool:
        used = self._used().used_keys
        for old in [known for known, end in used.items() if end <= now]:
            del used[old]
        if key in used:
            return False
        used[key] = until
        return True

    async def record(self, entry: AuditEntry, keep: int | None = None) -> None:
        audit = self._used().audit
        audit.append(replaced(entry, id=text_of(number_of(audit[-1].id) + 1 if audit else 1)))
        if keep is not None:
            alike = [each.id for each in audit if each.action == entry.action]
            gone = set(alike[: max(len(alike) - keep, 0)])
            audit[:] = [each for each in audit if each.id not in gone]

    async def list_audit(self, limit: int = 50, before: str | None = None) -> tuple[AuditEntry, ...]:
        end = None if before is None else text_of(number_of(before))
        earlier = [entry for entry in self._used().audit if end is None or entry.id < end]
        return tuple(reversed(earlier[-limit:]))

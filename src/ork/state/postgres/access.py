"""Tokens and the audit log. Writes to them wake no scheduler, because no scheduler acts on them."""

from __future__ import annotations

from datetime import datetime

from ork.model.access import AuditEntry, Token
from ork.state.lenient import UNKNOWN_TIME
from ork.state.postgres.database import Database
from ork.state.postgres.rows import free_text, lenient
from ork.state.refusals import token_exists
from ork.state.rows import number_of, text_of

_AFTER_ALL_IDS = 2**62


async def add_token(db: Database, token: Token) -> None:
    if await db.run("add_token", *_values(token)) == 0:
        raise token_exists(token.name)


async def find_token(db: Database, digest: str) -> Token | None:
    row = await db.row("find_token", digest)
    token = None if row is None else lenient.token(row)
    return None if token is None or token.unreadable else token


async def list_tokens(db: Database) -> tuple[Token, ...]:
    return tuple(lenient.token(row) for row in await db.rows("list_tokens"))


async def live_tokens(db: Database, digests: frozenset[str], now: datetime) -> frozenset[str]:
    return frozenset(digest for (digest,) in await db.rows("live_tokens", sorted(digests), now))


async def revoke_token(db: Database, id: str, now: datetime) -> bool:
    return await db.run("revoke_token", id, now) == 1


async def rotate_token(db: Database, id: str, successor: Token, until: datetime, now: datetime) -> bool:
    async with db.writing() as session:
        if await session.run("expire_token", id, until, now) == 0:
            return False
        if await session.run("add_token", *_values(successor)) == 0:
            raise token_exists(successor.name)
        return True


async def mark_token_used(db: Database, id: str, now: datetime) -> None:
    await db.run("mark_token_used", id, now)


async def forget_tokens(db: Database, name: str, before: datetime) -> int:
    return await db.run("forget_tokens", free_text(name), before)


async def use_once(db: Database, key: str, until: datetime, now: datetime) -> bool:
    await db.run("delete_used_keys", now)
    return await db.run("add_used_key", key, until) == 1


async def record(db: Database, entry: AuditEntry, keep: int | None = None) -> None:
    words = (free_text(entry.by), entry.action, free_text(entry.subject), free_text(entry.detail))
    await db.run("add_audit", entry.at, *words, entry.token, free_text(entry.address))
    if keep is not None:
        await db.run("trim_audit", entry.action, keep)


async def list_audit(db: Database, limit: int = 50, before: str | None = None) -> tuple[AuditEntry, ...]:
    rows = await db.rows("list_audit", _AFTER_ALL_IDS if before is None else number_of(before), limit)
    return tuple(
        AuditEntry(lenient.time(at) or UNKNOWN_TIME, by, action, subject, detail, text_of(id), token, address)
        for at, by, action, subject, detail, id, token, address in rows
    )


def _values(token: Token) -> tuple[object, ...]:
    times = (token.created_at, token.revoked_at, token.expires_at, token.last_used_at)
    return (token.id, free_text(token.name), token.role.value, token.digest, *times)

"""Tokens and the audit trail. Writing them wakes nobody: no scheduler has to act on them."""

from __future__ import annotations

from datetime import datetime

from ork.model.access import AuditEntry, Role, Token
from ork.state.refusals import token_exists
from ork.state.sqlite.connection import Row
from ork.state.sqlite.database import Database
from ork.state.sqlite.rows import free_text, moment_of, time_of, time_text

_AFTER_ALL_IDS = 2**62


def add_token(db: Database, token: Token) -> None:
    values = {
        "id": token.id,
        "name": free_text(token.name),
        "role": token.role.value,
        "digest": token.digest,
        "created_at": time_text(token.created_at),
        "revoked_at": time_text(token.revoked_at),
    }
    with db.connection.writing():
        if db.connection.run("add_token", values) == 0:
            raise token_exists(token.name)


def find_token(db: Database, digest: str) -> Token | None:
    row = db.connection.row("find_token", {"digest": digest})
    return None if row is None else _token_of(row)


def list_tokens(db: Database) -> tuple[Token, ...]:
    return tuple(_token_of(row) for row in db.connection.rows("list_tokens"))


def revoke_token(db: Database, id: str, now: datetime) -> bool:
    with db.connection.writing():
        return db.connection.run("revoke_token", {"id": id, "now": time_text(now)}) == 1


def record(db: Database, entry: AuditEntry) -> None:
    values = {
        "at": time_text(entry.at),
        "by": free_text(entry.by),
        "action": entry.action,
        "subject": free_text(entry.subject),
        "detail": free_text(entry.detail),
    }
    with db.connection.writing():
        db.connection.run("add_audit", values)


def list_audit(db: Database, limit: int = 50, before: int | None = None) -> tuple[AuditEntry, ...]:
    wanted = {"before": _AFTER_ALL_IDS if before is None else before, "limit": limit}
    rows = db.connection.rows("list_audit", wanted)
    return tuple(AuditEntry(moment_of(at), *rest) for at, *rest in rows)


def _token_of(row: Row) -> Token:
    id, name, role, digest, created_at, revoked_at = row
    return Token(id, name, Role(role), digest, moment_of(created_at), time_of(revoked_at))

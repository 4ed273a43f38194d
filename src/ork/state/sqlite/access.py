"""Tokens and the audit log. Writes to them wake no scheduler, because no scheduler acts on them."""

from __future__ import annotations

import json
from datetime import datetime

from ork.model.access import AuditEntry, Token
from ork.state.lenient import UNKNOWN_TIME
from ork.state.refusals import token_exists
from ork.state.rows import number_of, text_of
from ork.state.sqlite.database import Database
from ork.state.sqlite.rows import free_text, lenient, time_text

_AFTER_ALL_IDS = 2**62


def add_token(db: Database, token: Token) -> None:
    with db.connection.writing():
        _add(db, token)


def _add(db: Database, token: Token) -> None:
    values = {
        "id": token.id,
        "name": free_text(token.name),
        "role": token.role.value,
        "digest": token.digest,
        "created_at": time_text(token.created_at),
        "revoked_at": time_text(token.revoked_at),
        "expires_at": time_text(token.expires_at),
        "last_used_at": time_text(token.last_used_at),
    }
    if db.connection.run("add_token", values) == 0:
        raise token_exists(token.name)


def find_token(db: Database, digest: str) -> Token | None:
    row = db.connection.row("find_token", {"digest": digest})
    token = None if row is None else lenient.token(row)
    return None if token is None or token.unreadable else token


def list_tokens(db: Database) -> tuple[Token, ...]:
    return tuple(lenient.token(row) for row in db.connection.rows("list_tokens"))


def live_tokens(db: Database, digests: frozenset[str], now: datetime) -> frozenset[str]:
    wanted = {"digests": json.dumps(sorted(digests)), "now": time_text(now)}
    return frozenset(digest for (digest,) in db.connection.rows("live_tokens", wanted))


def revoke_token(db: Database, id: str, now: datetime) -> bool:
    with db.connection.writing():
        return db.connection.run("revoke_token", {"id": id, "now": time_text(now)}) == 1


def rotate_token(db: Database, id: str, successor: Token, until: datetime, now: datetime) -> bool:
    with db.connection.writing():
        if db.connection.run("expire_token", {"id": id, "until": time_text(until), "now": time_text(now)}) == 0:
            return False
        _add(db, successor)
        return True


def mark_token_used(db: Database, id: str, now: datetime) -> None:
    with db.connection.writing():
        db.connection.run("mark_token_used", {"id": id, "now": time_text(now)})


def forget_tokens(db: Database, name: str, before: datetime) -> int:
    with db.connection.writing():
        return db.connection.run("forget_tokens", {"name": free_text(name), "before": time_text(before)})


def use_once(db: Database, key: str, until: datetime, now: datetime) -> bool:
    with db.connection.writing():
        db.connection.run("delete_used_keys", {"now": time_text(now)})
        return db.connection.run("add_used_key", {"key": key, "until": time_text(until)}) == 1


def record(db: Database, entry: AuditEntry, keep: int | None = None) -> None:
    values = {
        "at": time_text(entry.at),
        "by": free_text(entry.by),
        "action": entry.action,
        "subject": free_text(entry.subject),
        "detail": free_text(entry.detail),
        "token": entry.token,
        "address": free_text(entry.address),
    }
    with db.connection.writing():
        db.connection.run("add_audit", values)
        if keep is not None:
            db.connection.run("trim_audit", {"action": entry.action, "keep": keep})


def list_audit(db: Database, limit: int = 50, before: str | None = None) -> tuple[AuditEntry, ...]:
    wanted = {"before": _AFTER_ALL_IDS if before is None else number_of(before), "limit": limit}
    rows = db.connection.rows("list_audit", wanted)
    return tuple(
        AuditEntry(lenient.time(at) or UNKNOWN_TIME, by, action, subject, detail, text_of(id), token, address)
        for at, by, action, subject, detail, id, token, address in rows
    )

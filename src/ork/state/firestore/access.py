"""Tokens and the audit trail. A token's document is named by its digest; `token_ids` keeps its id unique."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ork.model.access import AuditEntry, Token
from ork.model.record import replaced
from ork.state.firestore.commit import doc_id
from ork.state.firestore.database import Database, Plan
from ork.state.firestore.documents import lenient, mark_number, mark_text
from ork.state.firestore.values import clean, micros, moment_of
from ork.state.firestore.wire import Doc, Put, Query
from ork.state.refusals import token_exists

_DELETED_AT_ONCE = 200


def _token(doc: Doc) -> Token:
    names = ("id", "name", "role", "digest", "created", "revoked", "expires", "used")
    return lenient.token([doc.fields.get(name) for name in names])


def _put(token: Token, guard: bool | int) -> Put:
    times = {"revoked": token.revoked_at, "expires": token.expires_at, "used": token.last_used_at}
    fields: dict[str, Any] = {
        "id": token.id, "name": token.name, "role": token.role.value, "digest": token.digest,
        "created": micros(token.created_at), **{name: micros(time) for name, time in times.items() if time is not None},
    }  # fmt: skip
    return Put(_path(token.digest), fields, guard)


def _path(digest: str) -> str:
    return f"tokens/{doc_id(digest)}"


def _id_path(id: str) -> str:
    return f"token_ids/{doc_id(id)}"


async def _new(db: Database, token: Token) -> list[Put]:
    if await db.wire.get_all([_path(token.digest), _id_path(token.id)]):
        raise token_exists(token.name)
    return [_put(token, False), Put(_id_path(token.id), {"digest": token.digest}, False)]


async def add_token(db: Database, token: Token) -> None:
    async def plan() -> Plan[None]:
        return Plan(await _new(db, token), None)

    await db.change(plan)


async def _by_id(db: Database, id: str) -> Doc | None:
    name = await db.wire.get(_id_path(id))
    return None if name is None else await db.wire.get(_path(name.fields["digest"]))


async def find_token(db: Database, digest: str) -> Token | None:
    doc = await db.wire.get(_path(digest))
    return None if doc is None else _token(doc)


async def list_tokens(db: Database) -> tuple[Token, ...]:
    tokens = map(_token, await db.wire.query(Query("tokens")))
    return tuple(sorted(tokens, key=lambda token: (token.created_at, token.id)))


async def live_tokens(db: Database, digests: frozenset[str], now: datetime) -> frozenset[str]:
    docs = await db.wire.get_all([_path(digest) for digest in digests])
    return frozenset(token.digest for token in map(_token, docs.values()) if token.is_live(now))


async def revoke_token(db: Database, id: str, now: datetime) -> bool:
    async def plan() -> Plan[bool]:
        doc = await _by_id(db, id)
        token = None if doc is None else _token(doc)
        if doc is None or token is None or token.revoked_at is not None:
            return Plan((), False)
        return Plan([Put(doc.path, {"revoked": micros(now)}, doc.time, [("revoked",)])], True)

    return await db.change(plan)


async def rotate_token(db: Database, id: str, successor: Token, until: datetime, now: datetime) -> bool:
    async def plan() -> Plan[bool]:
        doc = await _by_id(db, id)
        token = None if doc is None else _token(doc)
        if doc is None or token is None or not token.is_live(now):
            return Plan((), False)
        expires = micros(min(until, token.expires_at or until))
        old = Put(doc.path, {"expires": expires}, doc.time, [("expires",)])
        return Plan([old, *await _new(db, successor)], True)

    return await db.change(plan)


async def mark_token_used(db: Database, id: str, now: datetime) -> None:
    async def plan() -> Plan[None]:
        doc = await _by_id(db, id)
        if doc is None or doc.fields.get("used", 0) >= micros(now):
            return Plan((), None)
        return Plan([Put(doc.path, {"used": micros(now)}, doc.time, [("used",)])], None)

    await db.change(plan)


async def forget_tokens(db: Database, name: str, before: datetime) -> int:
    async def plan() -> Plan[int]:
        docs = await db.wire.query(Query("tokens", (("name", "==", clean(name)),)))
        old = [doc for doc in docs if 0 < doc.fields.get("expires", 0) < micros(before)][: _DELETED_AT_ONCE // 2]
        gone = [path for doc in old for path in (doc.path, _id_path(doc.fields["id"]))]
        return Plan([Put(path, None) for path in gone], len(old))

    return await db.change(plan)


async def use_once(db: Database, key: str, until: datetime, now: datetime) -> bool:
    path = f"used_keys/{doc_id(key)}"

    async def plan() -> Plan[bool]:
        known = await db.wire.get(path)
        if known is not None and known.fields["until"] > micros(now):
            return Plan((), False)
        old = await db.wire.query(Query("used_keys", (("until", "<=", micros(now)),), (), _DELETED_AT_ONCE, ()))
        gone = [Put(doc.path, None) for doc in old if doc.path != path]
        return Plan([Put(path, {"until": micros(until)}, False if known is None else known.time), *gone], True)

    return await db.change(plan, is_repeatable=False)


async def record(db: Database, entry: AuditEntry, keep: int | None = None) -> None:
    """The id is the moment of the service's clock, or the next one that is not taken."""
    fields = {
        "at": micros(entry.at), "by": entry.by, "action": entry.action, "subject": entry.subject, "detail": entry.detail,
        "token": entry.token, "address": entry.address,
    }  # fmt: skip

    async def plan() -> Plan[None]:
        newest = await db.wire.query(Query("audit", (), ("-id",), 1, ("id",)))
        id = max(await db.wire.server_time(), mark_number(newest[0].id) + 1 if newest else 0)
        puts = [Put(f"audit/{mark_text(id)}", {**fields, "id": mark_text(id)}, False)]
        if keep is not None:
            alike = await db.wire.query(Query("audit", (("action", "==", clean(entry.action)),), (), None, ()))
            gone = sorted((doc.path for doc in alike), reverse=True)[max(keep - 1, 0) :]
            puts += [Put(path, None) for path in gone]
        return Plan(puts if keep != 0 else puts[1:], None)

    await db.change(plan)


async def list_audit(db: Database, limit: int = 50, before: str | None = None) -> tuple[AuditEntry, ...]:
    where = () if before is None else (("id", "<", mark_text(mark_number(before))),)
    docs = await db.wire.query(Query("audit", where, ("-id",), limit))
    return tuple(_entry(doc) for doc in docs)


def _entry(doc: Doc) -> AuditEntry:
    fields = doc.fields
    entry = AuditEntry(
        moment_of(fields["at"]), fields["by"], fields["action"], fields["subject"], fields.get("detail"), doc.id
    )
    return replaced(entry, token=fields.get("token"), address=fields.get("address"))

"""Tokens and the audit log."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Annotated

from fastapi import Path, Request
from starlette.responses import Response

from ork.api import models
from ork.api.bodies import RotateBody, TokenBody, described, json_response, read_body
from ork.api.context import api_of, caller_of
from ork.api.paging import page_after
from ork.api.parameters import LARGEST_PAGE, IdCursor, Limit, MarkCursor, parse_time
from ork.api.routing import Routes
from ork.api.tokens import make_token
from ork.errors import NotFoundError, RefusedError, UsageError
from ork.model.access import Role
from ork.model.record import replaced
from ork.status.shapes import audit_json, time_json, token_json

routes = Routes("access")

OVERLAP, OWN_OVERLAP = timedelta(hours=1), timedelta(minutes=1)
TokenId = Annotated[str, Path(pattern="^[0-9a-f]{1,64}$")]


@routes.add("GET", "/tokens", Role.ADMIN, response_model=models.TokenPage)
async def list_tokens(request: Request, limit: Limit = LARGEST_PAGE, cursor: IdCursor = None) -> Response:
    """Lists tokens, oldest first, without their text."""
    tokens = await api_of(request).store.list_tokens()
    shown, last = page_after(tokens, cursor, limit, lambda token: token.id)
    return json_response({"tokens": [token_json(token) for token in shown], "cursor": last})


@routes.add(
    "POST",
    "/tokens",
    Role.ADMIN,
    status_code=201,
    response_model=models.NewToken,
    openapi_extra=described(TokenBody, required=True),
)
async def create_token(request: Request) -> Response:
    """Creates a token and returns its text, which cannot be read again."""
    api, caller = api_of(request), caller_of(request)
    body = await read_body(request, TokenBody)
    if body.role not in set(Role):
        raise UsageError(f"there is no role {body.role!r}", hint=f"one of: {', '.join(Role)}")
    text, token = make_token(body.name, Role(body.role), api.now(), _expiry(body.expires_at, api.now()))
    if body.digest is not None:
        token = replaced(token, digest=body.digest)
    await api.store.add_token(token)
    await api.record_change(caller, "token.create", token.id, json.dumps({"name": token.name, "role": token.role}))
    return json_response({**token_json(token), "token": text if body.digest is None else None}, 201)


@routes.add(
    "POST",
    "/tokens/{id}/rotate",
    Role.ADMIN,
    status_code=201,
    response_model=models.NewToken,
    openapi_extra=described(RotateBody),
)
async def rotate_token(request: Request, id: TokenId) -> Response:
    """Creates a token with the same name and role and returns its text. The old token stays valid until `until`
    (default: an hour from now)."""
    api, caller = api_of(request), caller_of(request)
    body, now = await read_body(request, RotateBody), api.now()
    old = next((token for token in await api.store.list_tokens() if token.id == id), None)
    if old is None:
        raise _not_in_use(id)
    text, token = make_token(old.name, old.role, now, _expiry(body.expires_at, now))
    if body.digest is not None:
        token = replaced(token, digest=body.digest)
    until = now + OVERLAP if body.until is None else parse_time(body.until, "until")
    if caller.token_id == id and until < now + OWN_OVERLAP:
        # If the response is lost, the caller needs the old token.
        raise RefusedError(
            "this is the token of the request: it must stay valid for a while", hint="choose a later `until`"
        )
    if not await api.store.rotate_token(id, token, until, now):
        raise _not_in_use(id)
    await api.record_change(caller, "token.rotate", id, json.dumps({"by": token.id, "until": time_json(until)}))
    return json_response({**token_json(token), "token": text if body.digest is None else None}, 201)


@routes.add("DELETE", "/tokens/{id}", Role.ADMIN, status_code=204)
async def revoke_token(request: Request, id: TokenId) -> Response:
    """Revokes a token. A token cannot revoke itself."""
    api, caller = api_of(request), caller_of(request)
    if caller.token_id == id:
        # A caller who did this by mistake could not undo it.
        raise RefusedError("this is the token of the request", hint="revoke it with another one, or with `ork token`")
    if not await api.store.revoke_token(id, api.now()):
        raise _not_in_use(id)
    await api.record_change(caller, "token.revoke", id)
    return Response(status_code=204)


@routes.add("GET", "/audit", Role.ADMIN, response_model=models.AuditPage)
async def list_audit(request: Request, limit: Limit = 50, cursor: MarkCursor = None) -> Response:
    """Lists who changed what, newest first."""
    entries = await api_of(request).store.list_audit(limit, cursor)
    rows = [audit_json(entry) for entry in entries]
    return json_response({"entries": rows, "cursor": entries[-1].id if len(entries) == limit else None})


def _expiry(text: str | None, now: datetime) -> datetime | None:
    time = None if text is None else parse_time(text, "expires_at")
    if time is not None and time <= now:
        raise UsageError("expires_at: the time has passed", hint="omit it for a token that does not expire")
    return time


def _not_in_use(id: str) -> NotFoundError:
    return NotFoundError(f"no valid token `{id}`", hint="`ork token list` lists them")

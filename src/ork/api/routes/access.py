"""Tokens and the audit trail."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import Path, Request
from starlette.responses import Response

from ork.api import shapes
from ork.api.bodies import TokenBody, answer, described, read_body
from ork.api.context import api_of, caller_of
from ork.api.paging import page_behind
from ork.api.parameters import LARGEST_PAGE, IdCursor, Limit, NumberCursor
from ork.api.routing import Routes
from ork.api.tokens import make_token
from ork.errors import NotFoundError, RefusedError, UsageError
from ork.model.access import Role, Token
from ork.model.record import replaced
from ork.status.shapes import time_json

routes = Routes()


@routes.add("GET", "/tokens", Role.ADMIN, response_model=shapes.TokensShape)
async def list_tokens(request: Request, limit: Limit = LARGEST_PAGE, cursor: IdCursor = None) -> Response:
    """Who may do what, oldest first. Nobody is told a token's text again."""
    tokens = await api_of(request).store.list_tokens()
    shown, last = page_behind(tokens, cursor, limit, lambda token: token.id)
    return answer({"tokens": [token_json(token) for token in shown], "cursor": last})


@routes.add(
    "POST",
    "/tokens",
    Role.ADMIN,
    status_code=201,
    response_model=shapes.NewTokenShape,
    openapi_extra=described(TokenBody, required=True),
)
async def create_token(request: Request) -> Response:
    """Makes a token and tells its text, once."""
    api, caller = api_of(request), caller_of(request)
    body = await read_body(request, TokenBody)
    if body.role not in set(Role):
        raise UsageError(f"there is no role {body.role!r}", hint=f"one of: {', '.join(Role)}")
    text, token = make_token(body.name, Role(body.role), api.now())
    if body.digest is not None:
        token = replaced(token, digest=body.digest)
    await api.store.add_token(token)
    await api.changed(caller, "token.create", token.id, json.dumps({"name": token.name, "role": token.role}))
    return answer({**token_json(token), "token": text if body.digest is None else None}, 201)


@routes.add("DELETE", "/tokens/{id}", Role.ADMIN, status_code=204)
async def revoke_token(request: Request, id: Annotated[str, Path(pattern="^[0-9a-f]{1,64}$")]) -> Response:
    """From now on it opens nothing. No token revokes itself."""
    api, caller = api_of(request), caller_of(request)
    own = await api.store.find_token(caller.digest) if caller.digest else None
    if own is not None and own.id == id:
        # Who does so by mistake would have nothing left to mend it with.
        raise RefusedError("this is the token you ask with", hint="revoke it with another one, or beside the store")
    if not await api.store.revoke_token(id, api.now()):
        raise NotFoundError(f"no token `{id}` that is in use", hint="`ork token list` lists them")
    await api.changed(caller, "token.revoke", id)
    return Response(status_code=204)


@routes.add("GET", "/audit", Role.ADMIN, response_model=shapes.AuditShape)
async def list_audit(request: Request, limit: Limit = 50, cursor: NumberCursor = None) -> Response:
    """Who changed what, newest first."""
    entries = await api_of(request).store.list_audit(limit, cursor)
    rows = [
        {
            "id": entry.id,
            "at": time_json(entry.at),
            "by": entry.by,
            "action": entry.action,
            "subject": entry.subject,
            "detail": json.loads(entry.detail) if entry.detail else None,
        }
        for entry in entries
    ]
    return answer({"entries": rows, "cursor": str(entries[-1].id) if len(entries) == limit else None})


def token_json(token: Token) -> dict[str, Any]:
    return {
        "id": token.id,
        "name": token.name,
        "role": token.role.value,
        "created_at": time_json(token.created_at),
        "revoked_at": time_json(token.revoked_at),
    }

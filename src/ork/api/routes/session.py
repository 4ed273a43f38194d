"""Browsers sign in to the web UI: tickets and sessions."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from fastapi import Request
from starlette.responses import Response

from ork import __version__
from ork.api import page_models, problems
from ork.api.bodies import SignInBody, described, json_response, read_body
from ork.api.callers import address_in, caller_with, not_same_origin
from ork.api.context import Caller, api_of, caller_of, sign_ins_of
from ork.api.problems import problem
from ork.api.routing import Routes
from ork.api.sessions import delete_cookie, set_cookie, site_of
from ork.api.tickets import TICKET_SECONDS, UI
from ork.api.tokens import sign_in_digest
from ork.errors import UsageError
from ork.model.access import Role
from ork.status.shapes import time_json

routes = Routes("session")

BODY_LIMIT = 4096


@routes.add("POST", "/ui-tickets", Role.VIEWER, status_code=201, response_model=page_models.UiTicket)
async def create_ui_ticket(request: Request) -> Response:
    """Returns a ticket with which a browser can sign in once, within a minute, with the rights of this token."""
    api, caller = api_of(request), caller_of(request)
    if caller.is_session or caller.digest is None:
        # Otherwise a session could be prolonged for ever.
        return problem(403, problems.FORBIDDEN, "this needs a token; a session cannot make tickets")
    now = api.now()
    ticket = await sign_ins_of(request).tickets.make(UI, caller.digest, now)
    return json_response({"ticket": ticket, "until": time_json(now + timedelta(seconds=TICKET_SECONDS))}, 201)


@routes.add(
    "POST",
    "/session",
    None,
    body_limit=BODY_LIMIT,
    status_code=201,
    response_model=page_models.NewSession,
    openapi_extra=described(SignInBody, required=True),
)
async def sign_in(request: Request) -> Response:
    """Begins a session with a ticket or a token. One half of it is a cookie, the other one `half` in the response. Only
    for pages of this server: it needs `Sec-Fetch-Site: same-origin`."""
    api, sign_ins, address = api_of(request), sign_ins_of(request), address_in(request.scope)
    body = await read_body(request, SignInBody)
    if (body.ticket is None) == (body.token is None):
        raise UsageError("the body needs either `ticket` or `token`")
    if request.headers.get("sec-fetch-site") != "same-origin":
        return not_same_origin()
    if body.token is not None:
        found = await sign_ins.with_token(body.token.strip(), address)
    else:
        found = await sign_ins.with_ticket(body.ticket or "", UI, address)
    if isinstance(found, Response):
        return found
    if not found.role.includes(Role.VIEWER):
        return problem(403, problems.FORBIDDEN, f"a token with the role {found.role} does not open the web UI")
    site, now = site_of(request.headers, request.scope["scheme"]), api.now()
    session = await sign_ins.sessions.begin(found, site.port, now)
    caller = caller_with(found, address, session.ends, is_session=True)
    await api.record_change(caller, "session.create", found.id)
    response = json_response({**_state(request, caller), "half": session.half}, 201)
    set_cookie(response, site, session, now)
    return response


@routes.add("GET", "/session", Role.VIEWER, response_model=page_models.SessionState)
async def get_session(request: Request) -> Response:
    """Returns who sends this request, with a session or a token, and what they may do."""
    return json_response(_state(request, caller_of(request)))


@routes.add("DELETE", "/session", Role.VIEWER, status_code=204)
async def sign_out(request: Request) -> Response:
    """Deletes the browser's half of the session. The row of a single sign-on is revoked, so that copies of both halves
    end with it; a token goes on."""
    api, caller = api_of(request), caller_of(request)
    id = caller.token_id
    if caller.is_session and id is not None and caller.digest == await sign_in_digest(api.store, id):
        await api.store.revoke_token(id, api.now())
        await api.record_change(caller, "session.end", id)
    response = Response(status_code=204)
    delete_cookie(response, site_of(request.headers, request.scope["scheme"]))
    return response


def _state(request: Request, caller: Caller) -> dict[str, Any]:
    allowed = {
        route.endpoint.__name__
        for route in request.app.state.routes
        if route.role is not None and route.options.get("include_in_schema", True) and caller.role.includes(route.role)
    }
    return {
        "name": caller.name,
        "role": caller.role.value,
        "until": time_json(caller.until),
        "is_session": caller.is_session,
        "version": __version__,
        "time": time_json(api_of(request).now()),
        "may": sorted(allowed),
    }

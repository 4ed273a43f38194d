"""Single sign-on in a browser: to the provider, and back with an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import Request
from starlette.responses import RedirectResponse, Response

from ork.api import page_models
from ork.api.bodies import json_response
from ork.api.callers import address_in, caller_with
from ork.api.context import api_of, sign_ins_of
from ork.api.routes.ui import START, web_files
from ork.api.routing import Routes
from ork.api.sessions import Site, cookies_named, site_of
from ork.api.tickets import UI

if TYPE_CHECKING:
    from ork.api.oidc.failures import SignInFailure
    from ork.api.oidc.sign_on import SignOn

routes = Routes("sign-in")

CALLBACK = "/ui/oidc/callback"


@routes.add("GET", "/sign-in", None, response_model=page_models.SignInWays)
async def get_sign_in_ways(request: Request) -> Response:
    """Returns how people can sign in besides tokens: with a provider, if one is configured."""
    sign_on = api_of(request).sign_on
    found = None if sign_on is None else {"name": sign_on.config.name, "url": "/ui/oidc/start"}
    return json_response({"single_sign_on": found})


@routes.add("GET", "/ui/oidc/start", None, at_root=True, is_page=True, include_in_schema=False, response_class=Response)
async def start_sign_on(request: Request) -> Response:
    """Sends the browser to the provider. `back` is the page to return to."""
    api, sign_on = api_of(request), api_of(request).sign_on
    if sign_on is None:
        return RedirectResponse(START, 303)
    from ork.api.oidc.failures import SignInFailure
    from ork.api.oidc.flow import put_cookie, safe_back

    site = _site(request)
    back, is_other = safe_back(request.query_params.get("back")), request.query_params.get("account") == "other"
    try:
        with sign_on.admitted(address_in(request.scope)):
            address, cookie = await sign_on.begin(
                back, site.port, _callback(request), api.now(), other_account=is_other
            )
    except SignInFailure as failure:
        return await _failed(request, failure, back)
    response = RedirectResponse(address, 303)
    put_cookie(response, site, cookie)
    return response


@routes.add("GET", CALLBACK, None, at_root=True, is_page=True, include_in_schema=False, response_class=Response)
async def complete_sign_on(request: Request) -> Response:
    """Takes the provider's answer, and opens the web UI with a ticket for the person that signed in."""
    sign_on = api_of(request).sign_on
    if sign_on is None:
        return RedirectResponse(START, 303)
    from ork.api.oidc.failures import SignInFailure
    from ork.api.oidc.flow import cookie_name, put_cookie

    site = _site(request)
    cookies = cookies_named(cookie_name(site), request.scope["headers"])
    try:
        with sign_on.admitted(address_in(request.scope)):
            response = await _signed_on(request, sign_on, site, cookies)
    except SignInFailure as failure:
        response = await _failed(request, failure, await sign_on.back(cookies, site.port))
    put_cookie(response, site, "", 0)
    return response


async def _signed_on(request: Request, sign_on: SignOn, site: Site, cookies: list[str]) -> Response:
    from ork.api.oidc.sign_on import Asked

    api, now = api_of(request), api_of(request).now()
    found = await sign_on.complete(Asked(request.query_params, cookies, site.port, _callback(request)), now)
    token = await sign_on.add_row(found, now)
    caller = caller_with(token, address_in(request.scope), token.expires_at)
    await api.record_change(caller, "sign_in", token.id, sign_on.detail_of(found))
    ticket = await sign_ins_of(request).tickets.make(UI, token.digest, now)
    return RedirectResponse(found.flow.opened_with(ticket), 303)


async def _failed(request: Request, failure: SignInFailure, back: str) -> Response:
    from ork.api.oidc.page import failure_page

    if failure.note is not None:
        await sign_ins_of(request).note_failure(
            address_in(request.scope), f"single sign-on: {failure.note}", failure.by
        )
    files = await web_files(api_of(request))
    return failure_page(failure, None if files is None else files.build, back)


def _site(request: Request) -> Site:
    return site_of(request.headers, request.scope["scheme"])


def _callback(request: Request) -> str:
    """The guard has checked that the host is one of this server's names."""
    return f"{request.scope['scheme']}://{request.headers['host']}{CALLBACK}"

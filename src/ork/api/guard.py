"""Checks every request: its origin, its caller, and the caller's role.

Default deny: only routes in the list pass, and only for callers with the required role. The router never sees any other
request.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Protocol

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ork.api import problems
from ork.api.callers import Callers, CallerStore, limited
from ork.api.connections import IS_FULL
from ork.api.context import Caller
from ork.api.identity_tokens import IdentityVerifier
from ork.api.origins import Origins
from ork.api.problems import problem
from ork.api.proxies import TrustedProxies
from ork.api.quotas import Quota
from ork.api.routing import Match, Route, RouteTable
from ork.api.streams import LiveTokens, Streams, TokenEnded
from ork.errors import NotFoundError, OrkError, UsageError

SECURITY_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",  # unless the route says otherwise
}
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; "
    "worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types ork"
)
HSTS = "max-age=31536000"
HEAD_LIMIT = 96 * 1024  # a query may hold two paths of 4000 characters, each of them nine bytes
REQUESTS, REQUESTS_OF_ONE_TOKEN = 1000, 100
_LATER = {"Retry-After": "10"}
_CLOSE = {"Connection": "close"}
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class GuardStore(CallerStore, LiveTokens, Protocol):
    """The part of the store that the guard needs."""


class RequestGuard:
    """An ASGI application that wraps another one."""

    def __init__(
        self,
        app: ASGIApp,
        table: RouteTable,
        store: GuardStore,
        *,
        origins: Origins,
        proxies: TrustedProxies | None = None,
        hook_secret: Callable[[str], str | None] = lambda _name: None,
        platform: IdentityVerifier | None = None,
    ) -> None:
        self.app = app
        self._table = table
        self._origins = origins
        self._proxies = proxies or TrustedProxies()
        self._callers = Callers(store, hook_secret, platform)
        self._streams = Streams(store)
        self._requests = Quota(REQUESTS, REQUESTS_OF_ONE_TOKEN)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            scope = self._proxies.as_sent(scope)
            match = self._table.match(scope["method"], scope["path"])
            is_page = match.route is not None and match.route.is_page
            await self._respond(scope, receive, _with_security_headers(send, scope["scheme"], is_page), match)
        else:
            await send({"type": "websocket.close", "code": 1008})  # other protocols have no routes

    async def _respond(self, scope: Scope, receive: Receive, send: Send, match: Match) -> None:
        try:
            refused, receive = await self._check(scope, receive, match)
        except OrkError as error:
            refused = problems.of_error(error)
        if refused is not None:
            await refused(scope, receive, send)
            return
        assert match.route is not None
        scope["ork.sign_ins"] = self._callers.sign_ins
        await self._pass_on(match.route, scope, limited(receive, match.route.body_limit), send)

    async def _check(self, scope: Scope, receive: Receive, match: Match) -> tuple[Response | None, Receive]:
        headers = Headers(scope=scope)
        route = match.route
        refused = self._check_head(scope, headers, is_page=route is not None and route.is_page)
        if refused is not None or (route is not None and route.is_health):
            return refused, receive
        if scope.get("state", {}).get(IS_FULL):
            return _server_full(), receive
        if route is None or route.role is not None:
            refused, receive = await self._callers.check(scope, headers, receive, match)
        return refused or self._check_route(scope, headers, route, match.methods), receive

    async def _pass_on(self, route: Route, scope: Scope, receive: Receive, send: Send) -> None:
        caller: Caller | None = scope.get("ork.caller")
        if caller is None:
            await self.app(scope, receive, send)
            return
        with self._requests.held(caller.digest or caller.name) as is_free:
            if not is_free:
                await _too_many_requests()(scope, receive, send)
            elif route.is_stream:
                await self._stream(scope, receive, send)
            else:
                await self.app(scope, receive, send)

    async def _stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends a stream. It ends regularly when its token is revoked or expires."""
        caller: Caller = scope["ork.caller"]
        sent = _TrackedSend(send)
        try:
            async with self._streams.opened(caller.digest or "", caller.until) as is_open:
                if not is_open:
                    await _too_many_streams()(scope, receive, send)
                    return
                await self.app(scope, receive, sent)
        except TokenEnded:
            if sent.has_started:
                await sent.finish()
            else:
                await problem(401, problems.UNAUTHENTICATED, "the token has ended")(scope, receive, send)

    def _check_head(self, scope: Scope, headers: Headers, *, is_page: bool) -> Response | None:
        if _head_size(scope) > HEAD_LIMIT:
            return problem(431, problems.TOO_LARGE, f"the headers may have at most {HEAD_LIMIT:,} bytes")
        if "\0" in scope["path"] or b"%00" in scope["query_string"]:
            return problem(400, UsageError.code, "names do not contain NUL characters")
        if _CONTROL.search(scope["path"]):
            return problem(
                404, NotFoundError.code, "paths do not contain control characters", "see /api/v1/openapi.json"
            )
        refusal = self._origins.refusal(headers, scope["scheme"], is_page=is_page)
        if refusal is None:
            return None
        status, why, hint = refusal
        return problem(status, problems.FOREIGN, why, hint)

    # ── authorization ────────────────────────────────────────────────────────────────────────────

    def _check_route(
        self, scope: Scope, headers: Headers, route: Route | None, methods: tuple[str, ...]
    ) -> Response | None:
        if route is None and methods:
            allowed = {"Allow": ", ".join(sorted(methods))}
            return problem(405, problems.NO_SUCH_METHOD, f"this path does not support {scope['method']}", None, allowed)
        if route is None:
            return problem(404, NotFoundError.code, "there is nothing at this path", "see /api/v1/openapi.json")
        if route.role is not None:
            caller: Caller = scope["ork.caller"]
            if not caller.role.includes(route.role):
                detail = f"this needs the role {route.role}; the token {caller.name!r} has {caller.role}"
                return problem(403, problems.FORBIDDEN, detail)
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > route.body_limit:
            return problem(413, problems.TOO_LARGE, f"the body may have at most {route.body_limit:,} bytes")
        return None


class _TrackedSend:
    """Sends messages, and remembers whether a response has started and is incomplete."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.has_started = False
        self._is_incomplete = False

    async def __call__(self, message: Message) -> None:
        self.has_started = True
        self._is_incomplete = message["type"] == "http.response.start" or message.get("more_body", False)
        await self._send(message)

    async def finish(self) -> None:
        if self._is_incomplete:
            await self({"type": "http.response.body", "body": b"", "more_body": False})


def _server_full() -> Response:
    return problem(503, problems.TOO_MUCH_AT_ONCE, "the server has too many connections", None, {**_LATER, **_CLOSE})


def _too_many_requests() -> Response:
    return problem(429, problems.TOO_MUCH_AT_ONCE, "too many concurrent requests with this token", None, _LATER)


def _too_many_streams() -> Response:
    detail = "too many streams are open, with this token or in total"
    return problem(429, problems.TOO_MUCH_AT_ONCE, detail, "close some, or use another token", _LATER)


def _head_size(scope: Scope) -> int:
    pairs = sum(len(name) + len(value) for name, value in scope["headers"])
    return pairs + len(scope["path"]) + len(scope["query_string"])


def _with_security_headers(send: Send, scheme: str, is_page: bool) -> Send:
    async def send_guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers.update({**SECURITY_HEADERS, "Cache-Control": headers.get("Cache-Control", "no-store")})
            if is_page:
                headers["Content-Security-Policy"] = PAGE_POLICY
            if scheme == "https":
                headers["Strict-Transport-Security"] = HSTS
        await send(message)

    return send_guarded

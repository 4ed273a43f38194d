"""The one check in front of everything: where a request comes from, who asks, and whether they may.

Default deny: only what is in the list of routes is let through, and only to those its role names. The router behind
this never sees anything else.
"""

from __future__ import annotations

import hmac
import re
import time
from collections.abc import Callable
from typing import Any, Protocol

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ork.api import problems
from ork.api.context import Caller
from ork.api.origins import Origins
from ork.api.problems import problem
from ork.api.routing import Match, Route, RouteTable
from ork.api.signatures import is_signed_by
from ork.api.throttle import Throttle
from ork.api.tokens import digest_of
from ork.errors import NotFoundError, OrkError, UsageError
from ork.model.access import Role, Token
from ork.model.ids import NAME_PATTERN, RunId, TaskKey
from ork.model.task import Attempt
from ork.objects.documents import wake_proof

SECURITY_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
HSTS = "max-age=31536000"
HEAD_LIMIT = 96 * 1024  # a query may hold two paths of 4000 characters, each of them nine bytes
_ATTEMPT = re.compile(rf"(?P<run>[0-9a-z]{{1,40}})/(?P<task>{NAME_PATTERN})/(?P<index>\d{{1,9}})/(?P<number>\d{{1,6}})")
_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="ork"'}


class Tokens(Protocol):
    async def find_token(self, digest: str) -> Token | None: ...

    async def list_attempts(self, run: RunId, task: TaskKey | None = None) -> tuple[Attempt, ...]: ...


class Guard:
    """An ASGI application around another one."""

    def __init__(
        self,
        app: ASGIApp,
        table: RouteTable,
        tokens: Tokens,
        *,
        origins: Origins,
        hook_secret: Callable[[str], str | None] = lambda _name: None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.app = app
        self._table = table
        self._tokens = tokens
        self._origins = origins
        self._hook_secret = hook_secret
        self._monotonic = monotonic
        self._throttle = Throttle()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, _with_security_headers(send, scope["scheme"]))
        else:
            await send({"type": "websocket.close", "code": 1008})  # there is no route for any other protocol

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        match = self._table.match(scope["method"], scope["path"])
        try:
            refused = self._refuse_strangers(scope, headers)
            if refused is None and (match.route is None or match.route.role is not None):
                refused, receive = await self._check_caller(scope, headers, receive, match)
                refused = refused or self._check_route(scope, headers, match.route, match.methods)
        except OrkError as error:
            refused = problems.of_error(error)
        if refused is not None:
            await refused(scope, receive, send)
            return
        assert match.route is not None
        await self.app(scope, _limited(receive, match.route.body_limit), send)

    def _refuse_strangers(self, scope: Scope, headers: Headers) -> Response | None:
        if _head_size(scope) > HEAD_LIMIT:
            return problem(431, problems.TOO_LARGE, f"at most {HEAD_LIMIT:,} bytes of headers are taken")
        if "\0" in scope["path"] or b"%00" in scope["query_string"]:
            return problem(400, UsageError.code, "a NUL character is part of no name")
        refusal = self._origins.refusal(headers, scope["scheme"])
        if refusal is None:
            return None
        status, why, hint = refusal
        return problem(status, problems.FOREIGN, why, hint)

    # ── who asks ─────────────────────────────────────────────────────────────────────────────────

    async def _check_caller(
        self, scope: Scope, headers: Headers, receive: Receive, match: Match
    ) -> tuple[Response | None, Receive]:
        route = match.route
        if route is not None and "authorization" not in headers:
            if route.is_signed:
                return await self._check_signature(scope, headers, receive, route, match.names)
            if route.is_for_workers and "x-ork-attempt" in headers:
                return await self._check_worker(scope, headers), receive
        return await self._check_token(scope, headers), receive

    async def _check_worker(self, scope: Scope, headers: Headers) -> Response | None:
        """A proof made with an attempt's own key says no more than that its news are worth a look."""
        named, digest = headers["x-ork-attempt"], headers.get("x-ork-proof", "")
        address, now = (scope.get("client") or ("", 0))[0], self._monotonic()
        wait = self._throttle.seconds_to_wait(address, digest, now)
        if wait is None and await self._is_of_attempt(named, digest):
            scope["ork.caller"] = Caller(f"attempt {named}", Role.OPERATOR)
            return None
        self._throttle.failed(address, digest, now)
        return problem(
            401, problems.UNAUTHENTICATED, "this attempt is unknown, or the proof is not its own", None, _CHALLENGE
        )

    async def _is_of_attempt(self, named: str, proof: str) -> bool:
        found = _ATTEMPT.fullmatch(named)
        if found is None or not proof.isascii():
            return False
        run, task, number = RunId(found["run"]), found["task"], int(found["number"])
        # A task without instances is called by index 0, as in the folder of its attempt.
        keys = (TaskKey(task, int(found["index"])), *((TaskKey(task),) if int(found["index"]) == 0 else ()))
        attempts = [each for key in keys for each in await self._tokens.list_attempts(run, key)]
        proofs = [wake_proof(named, each.token_hash) for each in attempts if each.key.number == number]
        return any(hmac.compare_digest(each, proof) for each in proofs)

    async def _check_token(self, scope: Scope, headers: Headers) -> Response | None:
        kind, _, text = headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not text.strip():
            hint = "`ork token create` makes one: set ORK_TOKEN, or send `Authorization: Bearer TOKEN`"
            return problem(401, problems.UNAUTHENTICATED, "this needs a token", hint, _CHALLENGE)
        digest, address = digest_of(text.strip()), (scope.get("client") or ("", 0))[0]
        now = self._monotonic()
        wait = self._throttle.seconds_to_wait(address, digest, now)
        if wait is not None:
            return problem(
                429, problems.TOO_MANY, "too many wrong tokens from this address", None, {"Retry-After": f"{wait:.0f}"}
            )
        token = await self._tokens.find_token(digest)
        if token is None or token.revoked_at is not None:
            self._throttle.failed(address, digest, now)
            hint = "`ork token create` makes another, where the store can be reached"
            return problem(401, problems.UNAUTHENTICATED, "this token is unknown or revoked", hint, _CHALLENGE)
        self._throttle.succeeded(digest)
        scope["ork.caller"] = Caller(token.name, token.role, digest)
        return None

    async def _check_signature(
        self, scope: Scope, headers: Headers, receive: Receive, route: Route, names: dict[str, str]
    ) -> tuple[Response | None, Receive]:
        """Who signs with a hook's secret may start that workflow, and nothing else."""
        body = await _read_body(_limited(receive, route.body_limit))
        if body is None:
            return problem(413, problems.TOO_LARGE, "the body is too large"), receive
        name = names.get("name", "")
        secret = self._hook_secret(name)
        if secret is None or not is_signed_by(secret, headers, body, time.time()):
            detail = "this needs a token, or the signature of the hook's secret"
            return problem(401, problems.UNAUTHENTICATED, detail, None, _CHALLENGE), receive
        scope["ork.caller"] = Caller(f"hook {name}", Role.OPERATOR)
        return None, _replay(body)

    # ── whether they may ─────────────────────────────────────────────────────────────────────────

    def _check_route(
        self, scope: Scope, headers: Headers, route: Route | None, methods: tuple[str, ...]
    ) -> Response | None:
        if route is None and methods:
            allowed = {"Allow": ", ".join(sorted(methods))}
            return problem(405, problems.NO_SUCH_METHOD, f"{scope['method']} means nothing here", None, allowed)
        if route is None:
            return problem(404, NotFoundError.code, "there is nothing at this path", "see /api/v1/openapi.json")
        caller: Caller = scope["ork.caller"]
        if route.role is not None and not caller.role.includes(route.role):
            detail = f"this needs the role {route.role}; the token {caller.name!r} has {caller.role}"
            return problem(403, problems.FORBIDDEN, detail)
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > route.body_limit:
            return problem(413, problems.TOO_LARGE, f"at most {route.body_limit:,} bytes are taken here")
        return None


def _head_size(scope: Scope) -> int:
    pairs = sum(len(name) + len(value) for name, value in scope["headers"])
    return pairs + len(scope["path"]) + len(scope["query_string"])


def _with_security_headers(send: Send, scheme: str) -> Send:
    async def send_guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in SECURITY_HEADERS.items():
                headers[name] = value
            if scheme == "https":
                headers["Strict-Transport-Security"] = HSTS
        await send(message)

    return send_guarded


def _limited(receive: Receive, limit: int) -> Receive:
    """A body may be sent in pieces without saying how long it is: it is counted as it comes."""
    taken = 0

    async def receive_limited() -> Message:
        nonlocal taken
        message = await receive()
        taken += len(message.get("body", b""))
        if taken > limit:
            raise HTTPException(413, f"at most {limit:,} bytes are taken here")
        return message

    return receive_limited


async def _read_body(receive: Receive) -> bytes | None:
    parts: list[bytes] = []
    try:
        while True:
            message = await receive()
            parts.append(message.get("body", b""))
            if not message.get("more_body", False):
                return b"".join(parts)
    except HTTPException:
        return None


def _replay(body: bytes) -> Receive:
    rest: list[dict[str, Any]] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return rest.pop() if rest else {"type": "http.disconnect"}

    return receive_again

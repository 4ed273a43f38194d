"""Authenticates requests: by a token, a browser's session, the signature of a hook, or the proof of an attempt."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import datetime
from math import ceil
from typing import Any, Protocol
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Message, Receive, Scope

from ork.api import problems
from ork.api.attempt_proofs import AttemptProofs, AttemptRows
from ork.api.context import Caller
from ork.api.failed_sign_ins import FailedSignIns
from ork.api.identity_tokens import IdentityVerifier, is_identity_token
from ork.api.problems import problem
from ork.api.quotas import Quota, RequestRates
from ork.api.routing import Match, Route
from ork.api.sessions import HEADER, cookies_named, site_of
from ork.api.sign_ins import CHALLENGE, SignIns, SignInStore
from ork.api.signatures import is_signed, secret_name, verified_key
from ork.api.throttle import suspect_of
from ork.errors import RefusedError
from ork.model.access import Role, Token
from ork.model.workflow import WorkflowEntry

# Limits on bodies that must be read before the sender is authenticated: total time, and how many at once.
HOOK_BODY_SECONDS = 10.0
HOOK_BODIES, HOOK_BODIES_OF_ONE_ADDRESS = 32, 8
RETRY_SECONDS = 2
# Limits on attempts that use their documents: how many sign in at the same moment, and how often each may ask.
LOOKUPS, LOOKUPS_OF_ONE_ADDRESS = 128, 64
REQUESTS_PER_SECOND, REQUESTS_IN_A_BURST = 20.0, 200
_WRONG_PROOF = "the attempt is unknown, or its proof is wrong"


class CallerStore(AttemptRows, SignInStore, Protocol):
    """The part of the store that authentication needs."""

    async def get_workflow(self, name: str) -> WorkflowEntry | None: ...

    async def list_workflows(self) -> tuple[WorkflowEntry, ...]: ...


class Callers:
    """Stores the caller in the scope as `ork.caller`, or returns the response that rejects the request."""

    def __init__(
        self,
        known: CallerStore,
        hook_secret: Callable[[str], str | None],
        platform: IdentityVerifier | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._known = known
        self._hook_secret = hook_secret
        self._platform = platform
        self._monotonic = monotonic
        self._hook_bodies = Quota(HOOK_BODIES, HOOK_BODIES_OF_ONE_ADDRESS)
        self._failed_sign_ins = FailedSignIns(known, monotonic)
        self.sign_ins = SignIns(known, self._failed_sign_ins, monotonic)
        self._throttle = self.sign_ins.throttle
        self._attempts = AttemptProofs(known, monotonic)
        self._lookups = Quota(LOOKUPS, LOOKUPS_OF_ONE_ADDRESS)
        self._rates = RequestRates(REQUESTS_PER_SECOND, REQUESTS_IN_A_BURST)

    async def check(
        self, scope: Scope, headers: Headers, receive: Receive, match: Match
    ) -> tuple[Response | None, Receive]:
        route = match.route
        if route is not None and "authorization" not in headers:
            if route.is_signed:
                return await self._check_hook(scope, headers, receive, route, match.names.get("name", ""))
            if route.is_for_workers and "x-ork-attempt" in headers:
                return await self._check_worker(scope, headers), receive
            if route.is_for_attempts and "x-ork-attempt" in headers:
                return await self._check_attempt(scope, headers), receive
            if route.is_linked and (ticket := _ticket_in(scope)) is not None:
                return await self._check_link(scope, ticket), receive
        if route is not None and route.is_for_platform and self._platform is not None and is_identity_token(headers):
            return await self._check_platform(scope, headers, self._platform), receive
        if HEADER in headers and "authorization" not in headers:
            return await self._check_session(scope, headers), receive
        return await self._check_token(scope, headers), receive

    # ── tokens ───────────────────────────────────────────────────────────────────────────────────

    async def _check_token(self, scope: Scope, headers: Headers) -> Response | None:
        kind, _, text = headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not text.strip():
            hint = "`ork token create` creates one: set ORK_TOKEN, or send `Authorization: Bearer TOKEN`"
            return problem(401, problems.UNAUTHENTICATED, "this needs a token", hint, CHALLENGE)
        found = await self.sign_ins.with_token(text.strip(), address_in(scope))
        if isinstance(found, Response):
            return found
        scope["ork.caller"] = caller_with(found, address_in(scope), found.expires_at)
        return None

    # ── browsers ─────────────────────────────────────────────────────────────────────────────────

    async def _check_session(self, scope: Scope, headers: Headers) -> Response | None:
        """Accepts a session, only from its own page: other sites and other ports cannot send the header."""
        if headers.get("sec-fetch-site") != "same-origin":
            return not_same_origin()
        site = site_of(headers, scope["scheme"])
        cookies = cookies_named(site.cookie, scope["headers"])
        found = await self.sign_ins.with_session(cookies, headers[HEADER], site.port, address_in(scope))
        if isinstance(found, Response):
            return found
        token, session = found
        scope["ork.caller"] = caller_with(token, address_in(scope), session.ends, is_session=True)
        return None

    async def _check_link(self, scope: Scope, ticket: str) -> Response | None:
        """Accepts a ticket that was made for this path."""
        found = await self.sign_ins.with_ticket(ticket, link_purpose(scope["path"]), address_in(scope))
        if isinstance(found, Response):
            return found
        scope["ork.caller"] = caller_with(found, address_in(scope), found.expires_at)
        return None

    # ── the platform ─────────────────────────────────────────────────────────────────────────────

    async def _check_platform(self, scope: Scope, headers: Headers, platform: IdentityVerifier) -> Response | None:
        """Accepts an identity token of the alarm's service account, on the routes that are for the platform.

        Wrong ones are not throttled: a check costs no request to the store, and the platform's calls share addresses.
        """
        text, address = headers["authorization"].partition(" ")[2].strip(), address_in(scope)
        try:
            name = await platform.verify(text)
        except RefusedError as error:
            await self._failed_sign_ins.note(address, f"identity token: {error.message}")
            return problem(401, problems.UNAUTHENTICATED, error.message, error.hint, CHALLENGE)
        scope["ork.caller"] = Caller(name, Role.OPERATOR, address=address)
        return None

    # ── hooks ────────────────────────────────────────────────────────────────────────────────────

    async def _check_hook(
        self, scope: Scope, headers: Headers, receive: Receive, route: Route, name: str
    ) -> tuple[Response | None, Receive]:
        """A request signed with the hook's secret may start that workflow, and nothing else.

        The body is read only if the hook exists: until the signature is checked, the sender is unknown.
        """
        secret = self._hook_secret(name) if is_signed(headers) else None
        if secret is None or await self._known.get_workflow(name) is None:
            return _unsigned(), receive
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > route.body_limit:
            return problem(413, problems.TOO_LARGE, f"the body may have at most {route.body_limit:,} bytes"), receive
        with self._hook_bodies.held(address_in(scope)) as is_free:
            if not is_free:
                retry = {"Retry-After": str(RETRY_SECONDS)}
                detail = "too many unfinished hook requests, from this address or in total"
                return problem(429, problems.TOO_MUCH_AT_ONCE, detail, None, retry), receive
            body = await _read_body(receive, route.body_limit)
        if body is None:
            detail = (
                f"the body is larger than {route.body_limit:,} bytes, or took longer than {HOOK_BODY_SECONDS:.0f} s"
            )
            return problem(413, problems.TOO_LARGE, detail, None, {"Connection": "close"}), receive
        key = verified_key(secret, headers, body, time.time())
        if key is None:
            await self._failed_sign_ins.note(address_in(scope), f"wrong signature for hook {name}")
            return _unsigned(), receive
        await self._check_collisions(name)
        scope["ork.caller"] = Caller(f"hook {name}", Role.OPERATOR, address=address_in(scope))
        scope["ork.hook_key"] = key
        return None, _replay(body)

    async def _check_collisions(self, name: str) -> None:
        """RefusedError if several workflows share the secret: a signature would not say which one is meant."""
        wanted = secret_name(name)
        others = [each.name for each in await self._known.list_workflows() if secret_name(each.name) == wanted]
        if others != [name]:
            named = " and ".join(f"`{other}`" for other in others)
            raise RefusedError(
                f"the hooks of {named} share the secret {wanted}",
                hint="rename all but one of these workflows, or delete those that are no longer used",
            )

    # ── attempts ─────────────────────────────────────────────────────────────────────────────────

    async def _check_worker(self, scope: Scope, headers: Headers) -> Response | None:
        """Accepts a proof made with an attempt's own key. It only allows the attempt to wake its scheduler."""
        named, digest = headers["x-ork-attempt"], headers.get("x-ork-proof", "")
        suspect, now = suspect_of(address_in(scope), named), self._monotonic()
        wait = self._throttle.seconds_to_wait(suspect, digest, now)
        if wait is None and await self._attempts.can_wake(named, digest):
            scope["ork.caller"] = Caller(f"attempt {named}", Role.OPERATOR, address=suspect.address)
            return None
        self._throttle.failed(suspect, digest, now)
        await self._failed_sign_ins.note(suspect.address, "wrong proof of an attempt")
        return problem(401, problems.UNAUTHENTICATED, _WRONG_PROOF, None, CHALLENGE)

    async def _check_attempt(self, scope: Scope, headers: Headers) -> Response | None:
        """Accepts a proof that opens the documents of an attempt, until it has ended. Each route checks which these are."""
        named, proof, address = headers["x-ork-attempt"], headers.get("x-ork-proof", ""), address_in(scope)
        with self._lookups.held(address) as is_free:
            if not is_free:
                retry = {"Retry-After": str(RETRY_SECONDS)}
                return problem(429, problems.TOO_MUCH_AT_ONCE, "too many attempts sign in at once", None, retry)
            found = await self._attempts.signed_in(named, proof)
        if found is None:
            await self._failed_sign_ins.note(address, "wrong proof of an attempt")
            return problem(401, problems.UNAUTHENTICATED, _WRONG_PROOF, None, CHALLENGE)
        if self._attempts.has_ended(found):
            return problem(403, problems.FORBIDDEN, "the attempt has ended, and with it the access to its documents")
        wait = self._rates.seconds_to_wait(named, self._monotonic())
        if wait is not None:
            detail = "too many requests of one attempt"
            return problem(429, problems.TOO_MANY, detail, None, {"Retry-After": str(ceil(wait))})
        scope["ork.caller"] = Caller(f"attempt {named}", Role.SCHEDULER, found.token_hash, None, address, named)
        return None


def caller_with(token: Token, address: str, until: datetime | None, *, is_session: bool = False) -> Caller:
    return Caller(token.name, token.role, token.digest, token.id, address, until=until, is_session=is_session)


def not_same_origin() -> Response:
    """For a request that does not come from a page of this server, as browsers report it."""
    detail = "a session is only for pages of this server (Sec-Fetch-Site: same-origin)"
    hint = "browsers report this only over https, and to localhost: serve with TLS, or use `ssh -L`"
    return problem(403, problems.FOREIGN, detail, hint)


def link_purpose(path: str) -> str:
    """The purpose of a ticket that opens this path."""
    return f"GET {path}"


def _ticket_in(scope: Scope) -> str | None:
    given: list[str] = parse_qs(scope["query_string"].decode("latin-1")).get("ticket", [])
    return given[-1] if given else None


def address_in(scope: Scope) -> str:
    address: str = (scope.get("client") or ("", 0))[0]
    return address


def limited(receive: Receive, limit: int) -> Receive:
    """Counts the bytes of a body as they arrive, because its length may not be announced."""
    taken = 0

    async def receive_limited() -> Message:
        nonlocal taken
        message = await receive()
        taken += len(message.get("body", b""))
        if taken > limit:
            raise HTTPException(413, f"the body may have at most {limit:,} bytes")
        return message

    return receive_limited


async def _read_body(receive: Receive, limit: int) -> bytes | None:
    """The body; None if it is too large or takes too long."""
    parts: list[bytes] = []
    take = limited(receive, limit)
    try:
        async with asyncio.timeout(HOOK_BODY_SECONDS):
            while True:
                message = await take()
                parts.append(message.get("body", b""))
                if not message.get("more_body", False):
                    return b"".join(parts)
    except (HTTPException, TimeoutError):
        return None


def _replay(body: bytes) -> Receive:
    rest: list[dict[str, Any]] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return rest.pop() if rest else {"type": "http.disconnect"}

    return receive_again


def _unsigned() -> Response:
    detail = "this needs a token, or the signature of the hook's secret"
    return problem(401, problems.UNAUTHENTICATED, detail, None, CHALLENGE)

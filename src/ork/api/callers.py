"""Authenticates requests: by a token, by the signature of a hook, or by the proof of an attempt."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from math import ceil
from typing import Any, Protocol

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
from ork.api.quotas import Quota, Rates
from ork.api.routing import Match, Route
from ork.api.signatures import is_signed, secret_name, verified_key
from ork.api.throttle import Throttle, suspect_of
from ork.api.tokens import digest_of
from ork.errors import RefusedError, StoreError
from ork.model.access import AuditEntry, Role, Token
from ork.model.token_strength import weakness_of
from ork.model.workflow import WorkflowEntry

# Limits on bodies that must be read before the sender is authenticated: total time, and how many at once.
HOOK_BODY_SECONDS = 10.0
HOOK_BODIES, HOOK_BODIES_OF_ONE_ADDRESS = 32, 8
RETRY_SECONDS = 2
# The precision of a token's `last_used_at`.
USE_SECONDS = 300.0
# Limits on attempts that use their documents: how many sign in at the same moment, and how often each may ask.
LOOKUPS, LOOKUPS_OF_ONE_ADDRESS = 128, 64
REQUESTS_PER_SECOND, REQUESTS_IN_A_BURST = 20.0, 200
_WRONG_PROOF = "the attempt is unknown, or its proof is wrong"
_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="ork"'}


class CallerStore(AttemptRows, Protocol):
    """The part of the store that authentication needs."""

    async def find_token(self, digest: str) -> Token | None: ...

    async def get_workflow(self, name: str) -> WorkflowEntry | None: ...

    async def list_workflows(self) -> tuple[WorkflowEntry, ...]: ...

    async def mark_token_used(self, id: str, now: datetime) -> None: ...

    async def record(self, entry: AuditEntry, keep: int | None = None) -> None: ...


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
        self._throttle = Throttle()
        self._hook_bodies = Quota(HOOK_BODIES, HOOK_BODIES_OF_ONE_ADDRESS)
        self._failed_sign_ins = FailedSignIns(known, monotonic)
        self._noted_uses: dict[str, float] = {}
        self._attempts = AttemptProofs(known, monotonic)
        self._lookups = Quota(LOOKUPS, LOOKUPS_OF_ONE_ADDRESS)
        self._rates = Rates(REQUESTS_PER_SECOND, REQUESTS_IN_A_BURST)

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
        if route is not None and route.is_for_platform and self._platform is not None and is_identity_token(headers):
            return await self._check_platform(scope, headers, self._platform), receive
        return await self._check_token(scope, headers), receive

    # ── tokens ───────────────────────────────────────────────────────────────────────────────────

    async def _check_token(self, scope: Scope, headers: Headers) -> Response | None:
        kind, _, text = headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not text.strip():
            hint = "`ork token create` creates one: set ORK_TOKEN, or send `Authorization: Bearer TOKEN`"
            return problem(401, problems.UNAUTHENTICATED, "this needs a token", hint, _CHALLENGE)
        text, address = text.strip(), address_in(scope)
        digest, suspect = digest_of(text), suspect_of(address, text)
        now = self._monotonic()
        wait = self._throttle.seconds_to_wait(suspect, digest, now)
        if wait is not None:
            await self._failed_sign_ins.note(address, "too many wrong tokens")
            return problem(
                429,
                problems.TOO_MANY,
                "too many wrong tokens like this one from this address",
                None,
                {"Retry-After": f"{wait:.0f}"},
            )
        token = await self._known.find_token(digest)
        reason = _rejection_reason(token, text)
        if token is None or reason is not None:
            self._throttle.failed(suspect, digest, now)
            await self._failed_sign_ins.note(address, f"{reason} token", token)
            hint = "`ork token create` creates another, where the store can be reached"
            return problem(401, problems.UNAUTHENTICATED, f"this token is {reason}", hint, _CHALLENGE)
        self._throttle.succeeded(digest)
        await self._note_use(token, now)
        scope["ork.caller"] = Caller(token.name, token.role, digest, token.id, address)
        return None

    async def _note_use(self, token: Token, now: float) -> None:
        """Records the token's use, at most every few minutes, so that reads cause few writes."""
        noted_at = self._noted_uses.get(token.id)
        if noted_at is not None and now - noted_at < USE_SECONDS:
            return
        self._noted_uses[token.id] = now
        used_at = datetime.now(UTC)
        if token.last_used_at is not None and (used_at - token.last_used_at).total_seconds() < USE_SECONDS:
            return  # another process has recorded it
        with suppress(StoreError):
            await self._known.mark_token_used(token.id, used_at)

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
            return problem(401, problems.UNAUTHENTICATED, error.message, error.hint, _CHALLENGE)
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
        return problem(401, problems.UNAUTHENTICATED, _WRONG_PROOF, None, _CHALLENGE)

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
            return problem(401, problems.UNAUTHENTICATED, _WRONG_PROOF, None, _CHALLENGE)
        if self._attempts.has_ended(found):
            return problem(403, problems.FORBIDDEN, "the attempt has ended, and with it the access to its documents")
        wait = self._rates.seconds_to_wait(named, self._monotonic())
        if wait is not None:
            detail = "too many requests of one attempt"
            return problem(429, problems.TOO_MANY, detail, None, {"Retry-After": str(ceil(wait))})
        scope["ork.caller"] = Caller(f"attempt {named}", Role.SCHEDULER, found.token_hash, None, address, named)
        return None


def _rejection_reason(token: Token | None, text: str) -> str | None:
    """Why the token is rejected; None if it is valid."""
    if weakness_of(text) is not None:
        return "too easy to guess"
    if token is None or token.revoked_at is not None:
        return "unknown or revoked"
    return None if token.is_live(datetime.now(UTC)) else "expired"


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
    return problem(401, problems.UNAUTHENTICATED, detail, None, _CHALLENGE)

"""Checks what a client signs in with: a token, a ticket or a session. Wrong ones are throttled and recorded."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import NamedTuple, Protocol

from starlette.responses import Response

from ork.api import problems
from ork.api.failed_sign_ins import FailedSignIns
from ork.api.problems import problem
from ork.api.sessions import BrowserSession, Sessions
from ork.api.throttle import Throttle, suspect_of
from ork.api.tickets import Tickets, TicketStore
from ork.api.tokens import digest_of
from ork.errors import StoreError
from ork.model.access import AuditEntry, Token
from ork.model.token_strength import weakness_of

# The precision of a token's `last_used_at`.
USE_SECONDS = 300.0
CHALLENGE = {"WWW-Authenticate": 'Bearer realm="ork"'}
_ANOTHER_TOKEN = "`ork token create` creates another, where the store can be reached"
_AGAIN = "sign in again: `ork ui`, or enter a token"


class SignInStore(TicketStore, Protocol):
    """The part of the store that this needs."""

    async def find_token(self, digest: str) -> Token | None: ...

    async def mark_token_used(self, id: str, now: datetime) -> None: ...

    async def record(self, entry: AuditEntry, keep: int | None = None) -> None: ...


class Rejection(NamedTuple):
    """Why somebody may not sign in. `note` goes into the audit log; None: it is nothing suspicious."""

    detail: str
    hint: str
    note: str | None
    token: Token | None = None


class SignIns:
    """Every method returns the token that the client may act with, or the response that rejects the request."""

    def __init__(
        self, known: SignInStore, failed: FailedSignIns, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self.throttle = Throttle()
        self.sessions = Sessions(known)
        self.tickets = Tickets(known)
        self._known = known
        self._failed = failed
        self._monotonic = monotonic
        self._noted_uses: dict[str, float] = {}

    async def with_token(self, text: str, address: str) -> Token | Response:
        async def find() -> Token | Rejection:
            token = await self._known.find_token(digest_of(text))
            reason = _reason(token, text)
            if token is None or reason is not None:
                return Rejection(f"this token is {reason}", _ANOTHER_TOKEN, f"{reason} token", token)
            return token

        return await self._throttled("token", text, address, find)

    async def with_ticket(self, text: str, purpose: str, address: str) -> Token | Response:
        """Uses the ticket up."""

        async def find() -> Token | Rejection:
            ticket, now = await self.tickets.read(text, purpose), datetime.now(UTC)
            if ticket is None:
                return Rejection("this ticket is unknown", _AGAIN, "unknown ticket")
            token = await self._known.find_token(ticket.digest)
            if ticket.has_ended(now) or token is None or not token.is_live(now):
                return Rejection("this ticket has expired", _AGAIN, "expired ticket", token)
            if not await self.tickets.use(ticket, now):
                return Rejection("this ticket was used before", _AGAIN, "used ticket", token)
            return token

        return await self._throttled("ticket", text, address, find)

    async def with_session(
        self, cookies: list[str], half: str, port: int, address: str
    ) -> tuple[Token, BrowserSession] | Response:
        session = await self.sessions.find(cookies, half, port)

        async def find() -> Token | Rejection:
            now = datetime.now(UTC)
            if session is None:
                return Rejection("the cookie and the header are not those of one session", _AGAIN, "wrong session")
            token = await self._known.find_token(session.digest)
            if now >= session.ends or token is None or not token.is_live(now):
                return Rejection("the session has ended", _AGAIN, None)
            return token

        found = await self._throttled("session", half, address, find)
        if isinstance(found, Response):
            return found
        assert session is not None
        return found, session

    async def note_failure(self, address: str, why: str, by: str = "") -> None:
        """Records that a single sign-on failed. `by` is the person, if the provider has said who it is."""
        await self._failed.note(address, why, by=by)

    async def _throttled(
        self, kind: str, text: str, address: str, find: Callable[[], Awaitable[Token | Rejection]]
    ) -> Token | Response:
        digest, suspect, now = digest_of(text), suspect_of(address, text), self._monotonic()
        wait = self.throttle.seconds_to_wait(suspect, digest, now)
        if wait is not None:
            await self._failed.note(address, f"too many wrong {kind}s")
            detail = f"too many wrong {kind}s like this one from this address"
            return problem(429, problems.TOO_MANY, detail, None, {"Retry-After": f"{wait:.0f}"})
        found = await find()
        if isinstance(found, Rejection):
            self.throttle.failed(suspect, digest, now)
            if found.note is not None:
                await self._failed.note(address, found.note, found.token)
            return problem(401, problems.UNAUTHENTICATED, found.detail, found.hint, CHALLENGE)
        self.throttle.succeeded(digest)
        await self._note_use(found, now)
        return found

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


def _reason(token: Token | None, text: str) -> str | None:
    """Why the token is rejected; None if it is valid."""
    if weakness_of(text) is not None:
        return "too easy to guess"
    if token is None or token.revoked_at is not None:
        return "unknown or revoked"
    return None if token.is_live(datetime.now(UTC)) else "expired"

"""Single sign-on: sends a browser to the provider, and turns the provider's answer into a person with a role."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, NamedTuple, Protocol

from ork.api.oidc.failures import SignInFailure, start_again, wrong_answer
from ork.api.oidc.flow import Flows, SignOnFlow
from ork.api.oidc.id_tokens import Expected, UnknownKey, verified_claims
from ork.api.oidc.provider import Metadata, Provider
from ork.api.quotas import Quota, RequestRates
from ork.api.tickets import REMEMBERED, TicketStore
from ork.api.tokens import sign_in_digest
from ork.model.access import Role, Token
from ork.model.sign_in import OidcConfig, Person, groups_in, person_of, role_of

# Limits on requests of people who are not signed in yet, which cause requests to the provider.
AT_ONCE, AT_ONCE_OF_ONE_ADDRESS = 64, 16
PER_SECOND, IN_A_BURST = 2.0, 60
# How long the rows of ended sign-ins of a person are kept, for whoever reads the audit log.
KEPT = timedelta(days=30)
_SHOWN_GROUPS = 20


class SignOnStore(TicketStore, Protocol):
    async def add_token(self, token: Token) -> None: ...

    async def forget_tokens(self, name: str, before: datetime) -> int: ...


class Asked(NamedTuple):
    """The request that a browser comes back with."""

    query: Mapping[str, str]
    cookies: Iterable[str]
    port: int
    redirect_uri: str


class SignedOn(NamedTuple):
    person: Person
    role: Role
    flow: SignOnFlow


class SignOn:
    """One provider, for one store. Only keys and endpoints of the provider are kept in memory."""

    def __init__(self, provider: Provider, store: SignOnStore, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.config: OidcConfig = provider.config
        self._quota = Quota(AT_ONCE, AT_ONCE_OF_ONE_ADDRESS)
        self._rates = RequestRates(PER_SECOND, IN_A_BURST)
        self._provider = provider
        self._store = store
        self._flows = Flows(store, provider.config.issuer, provider.config.client_id)
        self._monotonic = monotonic

    @contextmanager
    def admitted(self, address: str) -> Iterator[None]:
        """Around a request of somebody who is not signed in. SignInFailure if there are too many of them."""
        wait = self._rates.seconds_to_wait(address, self._monotonic())
        with self._quota.held(address) as is_free:
            if wait is not None or not is_free:
                raise SignInFailure(429, "Too many sign-ins", "There are too many sign-ins at once.", "Wait a moment.")
            yield

    async def begin(
        self, back: str, port: int, redirect_uri: str, now: datetime, *, other_account: bool = False
    ) -> tuple[str, str]:
        """The address of the provider to send the browser to, and the cookie of this sign-in."""
        from authlib.oauth2.rfc6749.parameters import prepare_grant_uri
        from authlib.oauth2.rfc7636 import create_s256_code_challenge

        metadata = await self._provider.metadata()
        flow, cookie = await self._flows.begin(back, port, now)
        address: str = prepare_grant_uri(
            metadata.authorization,
            self.config.client_id,
            "code",
            redirect_uri=redirect_uri,
            scope=list(self.config.scopes),
            state=flow.state,
            nonce=flow.nonce,
            code_challenge=create_s256_code_challenge(flow.verifier),
            code_challenge_method="S256",
            prompt="select_account" if other_account else None,
        )
        return address, cookie

    async def back(self, cookies: Iterable[str], port: int) -> str:
        """The page that the person wanted to see, whatever became of the sign-in."""
        return await self._flows.back(cookies, port)

    async def complete(self, asked: Asked, now: datetime) -> SignedOn:
        """Who has signed in. SignInFailure if nobody has, or somebody who has no role."""
        flow = await self._flows.find(asked.cookies, asked.query.get("state", ""), asked.port)
        if flow is None:
            raise start_again("it was not begun in this browser, or was completed before")
        if flow.has_ended(now):
            raise start_again("it took longer than ten minutes", is_suspicious=False)
        metadata = await self._provider.metadata()
        code = self._code(asked.query, metadata)
        claims = await self._claims(flow, code, asked.redirect_uri, metadata, now)
        until = datetime.fromtimestamp(flow.ends, now.tzinfo) + REMEMBERED
        if not await self._store.use_once(f"oidc {flow.random}", until, now):
            raise start_again("it was completed before")
        person = person_of(claims, self.config.groups_claim)
        return SignedOn(person, self._role(person, claims), flow)

    async def add_row(self, signed_on: SignedOn, now: datetime) -> Token:
        """A token for this sign-in alone. Nobody knows its text: only a ticket, and then a session, can use it."""
        id = secrets.token_hex(8)
        ends = now + timedelta(seconds=self.config.session_seconds)
        token = Token(
            id, signed_on.person.name, signed_on.role, await sign_in_digest(self._store, id), now, expires_at=ends
        )
        await self._store.forget_tokens(token.name, now - KEPT)
        await self._store.add_token(token)
        return token

    def detail_of(self, signed_on: SignedOn) -> str:
        """For the audit log."""
        person = signed_on.person
        said = {"issuer": self.config.issuer, "subject": person.subject, "email": person.email, "role": signed_on.role}
        return json.dumps(said)

    # ── the provider's answer ────────────────────────────────────────────────────────────────────

    def _code(self, query: Mapping[str, str], metadata: Metadata) -> str:
        """The code, if the answer is from the provider that was asked."""
        issuer = query.get("iss")
        if (issuer is None and metadata.says_issuer) or (issuer is not None and issuer != self.config.issuer):
            raise wrong_answer("it is from another provider than the one that was asked")
        error = query.get("error")
        if error == "access_denied":
            raise SignInFailure(
                403, "You are not signed in", f"{self.config.name} did not sign you in.", "Begin again."
            )
        if error is not None:
            shown = error[:100] if error.isascii() and error.isprintable() else "an unknown error"
            raise SignInFailure(502, "You are not signed in", f"{self.config.name} answered: {shown}", "Begin again.")
        code = query.get("code")
        if not code:
            raise start_again("the provider has sent no code")
        return code

    async def _claims(
        self, flow: SignOnFlow, code: str, redirect_uri: str, metadata: Metadata, now: datetime
    ) -> Mapping[str, Any]:
        answer = await self._provider.tokens(code, flow.verifier, redirect_uri)
        access = answer.get("access_token")
        access = access if isinstance(access, str) and access.isascii() and access.isprintable() else None
        expected = Expected(self.config.issuer, self.config.client_id, flow.nonce, access)
        try:
            claims = verified_claims(answer.get("id_token"), await self._provider.keys(), expected, now)
        except UnknownKey:
            claims = await self._with_new_keys(answer.get("id_token"), expected, now)
        if not self._needs_more(claims) or not metadata.userinfo or not access:
            return claims
        more = await self._provider.userinfo(access, metadata.userinfo)
        if more.get("sub") != claims["sub"]:
            raise wrong_answer("its userinfo is about somebody else")
        return {**more, **claims}

    def _needs_more(self, claims: Mapping[str, Any]) -> bool:
        """Whether the id token lacks something that providers may say in userinfo only."""
        has_groups = groups_in(claims, self.config.groups_claim) is not None
        return "email" not in claims or (not has_groups and any(rule.groups for rule in self.config.roles))

    async def _with_new_keys(self, token: object, expected: Expected, now: datetime) -> Mapping[str, Any]:
        try:
            return verified_claims(token, await self._provider.keys(fresh=True), expected, now)
        except UnknownKey:
            raise wrong_answer("its id token is signed with a key that it does not publish") from None

    def _role(self, person: Person, claims: Mapping[str, Any]) -> Role:
        role = role_of(person, self.config)
        if role is not None:
            return role
        said = f"{person.name} has signed in at {self.config.name}, but has no role in Ork."
        raise SignInFailure(
            403, "You have no role in Ork", f"{said} {self._why_no_role(person, claims)}",
            "An admin of Ork can give you one: `sign_in` in ork.yaml names who gets which role.",
            note=f"no role for {person.name}", by=person.name,
        )  # fmt: skip

    def _why_no_role(self, person: Person, claims: Mapping[str, Any]) -> str:
        if self.config.allowed_domains and person.domain not in self.config.allowed_domains:
            return "Only verified e-mail addresses of certain domains are accepted."
        claim = self.config.groups_claim
        if person.groups:
            shown = ", ".join(person.groups[:_SHOWN_GROUPS])
            return f"None of your groups has one: {shown}{' …' if len(person.groups) > _SHOWN_GROUPS else ''}."
        if groups_in(claims, claim) is None:
            return f"The provider says nothing about your groups: it sends no claim `{claim}`."
        return "The provider says that you are in no group."

"""Verifies identity tokens (OIDC) of a cloud platform: who signed one, for whom, and whether it is still valid."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ork.errors import RefusedError, StoreUnavailableError
from ork.model.record import Record

if TYPE_CHECKING:
    from starlette.datastructures import Headers

ISSUERS = ("https://accounts.google.com", "accounts.google.com")
CLOCK_SKEW_SECONDS = 10
KEYS_SECONDS = 3600.0  # how long keys are used if their source does not say
MIN_KEYS_SECONDS = 60.0  # unknown keys cause at most one request for new ones in this time
FETCH_SECONDS = 5.0
MAX_KEYS_BYTES = 1 << 20
MAX_TOKEN_BYTES = 8192
_TOKEN = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*")
_MAX_AGE = re.compile(r"max-age=(\d{1,7})")

Fetch = Callable[[str], tuple[bytes, str]]
"""Returns the body of a URL and its Cache-Control header. OSError if that fails."""


class ExpectedIdentity(Record):
    """Whose tokens are accepted: issued for `audience`, of the service account `email`."""

    audience: str
    email: str
    keys_url: str


def is_identity_token(headers: Headers) -> bool:
    """Whether the request carries a signed token of a platform rather than one of Ork's own."""
    kind, _, text = headers.get("authorization", "").partition(" ")
    text = text.strip()
    return kind.lower() == "bearer" and len(text) <= MAX_TOKEN_BYTES and _TOKEN.fullmatch(text) is not None


class IdentityVerifier:
    """Accepts tokens of one service account for one audience. The platform's keys are fetched when needed and kept."""

    def __init__(
        self, expected: ExpectedIdentity, fetch: Fetch | None = None, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._expected = expected
        self._fetch = fetch or _fetch
        self._monotonic = monotonic
        self._keys: Mapping[str, str] = {}
        self._fresh_until = 0.0
        self._fetched_at: float | None = None
        self._fetching = asyncio.Lock()

    async def prepare(self) -> None:
        """Does ahead what the first token needs: loads the packages and fetches the keys, if they can be had now."""
        import google.auth.jwt  # noqa: F401

        with suppress(StoreUnavailableError):
            await self._keys_with("")

    async def verify(self, token: str) -> str:
        """The name of the caller. RefusedError if the token is not valid, and StoreUnavailableError if that cannot be
        determined."""
        from google.auth.exceptions import GoogleAuthError
        from google.auth.jwt import decode, decode_header

        try:
            key = decode_header(token).get("kid")
            keys = await self._keys_with(key if isinstance(key, str) else "")
            claims = decode(
                token, certs=keys, audience=self._expected.audience, clock_skew_in_seconds=CLOCK_SKEW_SECONDS
            )
        except (GoogleAuthError, ValueError, TypeError, AttributeError) as error:
            raise _refused(str(error).partition("\n")[0][:200]) from None
        self._check(claims)
        return f"platform {self._expected.email}"

    def _check(self, claims: Mapping[str, Any]) -> None:
        if claims.get("iss") not in ISSUERS:
            raise _refused("its issuer is not the platform")
        if claims.get("email") != self._expected.email or claims.get("email_verified") is not True:
            raise _refused("it belongs to another account")

    async def _keys_with(self, key: str) -> Mapping[str, str]:
        """The platform's keys, fetched anew if they are old, or if this key is unknown and they may have changed."""
        async with self._fetching:
            now = self._monotonic()
            is_old = now >= self._fresh_until
            may_ask = self._fetched_at is None or now - self._fetched_at >= MIN_KEYS_SECONDS
            if is_old or (key not in self._keys and may_ask):
                await self._fetch_keys(now)
            return self._keys

    async def _fetch_keys(self, now: float) -> None:
        try:
            body, cached = await asyncio.to_thread(self._fetch, self._expected.keys_url)
            keys = json.loads(body)
        except (OSError, ValueError) as error:
            if self._keys:
                self._fresh_until = now + MIN_KEYS_SECONDS
                return  # the platform changes its keys a day ahead
            raise StoreUnavailableError(f"the platform's keys cannot be read: {error}", code="ORK841") from None
        if not isinstance(keys, dict) or not all(isinstance(value, str) for value in keys.values()):
            raise StoreUnavailableError("the platform's keys are not a map of certificates", code="ORK841")
        age = _MAX_AGE.search(cached)
        self._keys, self._fetched_at = keys, now
        self._fresh_until = now + max(MIN_KEYS_SECONDS, float(age[1]) if age else KEYS_SECONDS)


def _fetch(url: str) -> tuple[bytes, str]:
    import httpx2

    from ork.outbound.clients import blocking_client, reason

    try:
        with blocking_client(url, seconds=FETCH_SECONDS) as client:
            answer = client.get(url)
            answer.raise_for_status()
    except httpx2.HTTPError as error:
        raise OSError(reason(error)) from None
    if len(answer.content) > MAX_KEYS_BYTES:
        raise OSError("the answer is too large")
    return answer.content, answer.headers.get("cache-control", "")


def _refused(why: str) -> RefusedError:
    hint = "it must be an identity token of `alarm.cloud_tasks.service_account` for the audience `url`"
    return RefusedError(f"this identity token is not accepted: {why}", hint=hint)

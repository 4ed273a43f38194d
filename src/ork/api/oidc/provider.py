"""The provider: what it says of itself, its keys, and the requests that Ork sends to it.

What it says of itself is kept for an hour, its keys for ten minutes; an unknown key is asked for at once. All requests
obey the outbound rule, which also permits the issuer's own host.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import quote_plus, urlsplit

from ork.api.oidc.failures import SignInFailure, provider_away, start_again, wrong_answer
from ork.model.outbound import Allowed, OutboundRule, parse_allowed
from ork.model.record import replaced
from ork.model.sign_in import OidcConfig
from ork.outbound.addresses import BlockedAddressError, NoResponseError

METADATA_SECONDS = 3600.0
KEYS_SECONDS = 600.0
AWAY_SECONDS = 3.0  # after no answer, others are not made to wait for the next one
REQUEST_SECONDS = 10.0
MAX_BYTES = 1 << 20
_FORM = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
_PORTS = {"http": 80, "https": 443}

T = TypeVar("T")


class Metadata(NamedTuple):
    """The provider's endpoints. `says_issuer`: its answers carry `iss` (RFC 9207)."""

    authorization: str
    token: str
    keys: str
    userinfo: str | None
    auth_methods: tuple[str, ...]
    says_issuer: bool


class Provider:
    def __init__(
        self,
        config: OidcConfig,
        rule: OutboundRule,
        secret: Callable[[str], str | None],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.config = config
        self._rule = replaced(rule, allow=(*rule.allow, _own_host(config.issuer)))
        self._secret = secret
        self._metadata = _Kept[Metadata](METADATA_SECONDS, self._fetch_metadata, monotonic)
        self._keys = _Kept[list[dict[str, Any]]](KEYS_SECONDS, self._fetch_keys, monotonic)

    async def metadata(self) -> Metadata:
        return await self._metadata.get()

    async def keys(self, *, fresh: bool = False) -> list[dict[str, Any]]:
        """The keys that the provider signs with, as JSON."""
        return await self._keys.get(fresh=fresh)

    async def tokens(self, code: str, verifier: str, redirect_uri: str) -> Mapping[str, Any]:
        """What the provider gives for the code: an id token and an access token."""
        from authlib.oauth2.auth import ClientAuth
        from authlib.oauth2.rfc6749.parameters import prepare_token_request

        metadata = await self.metadata()
        secret = await self._client_secret()
        body = prepare_token_request("authorization_code", redirect_uri=redirect_uri, code=code, code_verifier=verifier)
        client = ClientAuth(*_credentials(self.config.client_id, secret, metadata.auth_methods))
        _, headers, body = client.prepare("POST", metadata.token, dict(_FORM), body)
        status, answer = await self._ask(metadata.token, "POST", headers, body.encode())
        if status >= 500:
            raise self._away(f"its token endpoint answered {status}")
        if status != 200 or not isinstance(answer, dict):
            raise self._refused(answer)
        return answer

    async def userinfo(self, access_token: str, url: str) -> Mapping[str, Any]:
        status, answer = await self._ask(
            url, "GET", {"Authorization": f"Bearer {access_token}", "Accept": "application/json"}
        )
        if status != 200 or not isinstance(answer, dict):
            raise wrong_answer(f"its userinfo endpoint answered {status}")
        return answer

    async def _client_secret(self) -> str | None:
        name = self.config.client_secret
        if name is None:
            return None
        found = await asyncio.to_thread(self._secret, name)
        if not found:
            raise SignInFailure(
                503, "Single sign-on is not set up", f"The secret {name} has no value where `ork serve` runs.",
                "An admin of Ork has to set it. Tokens work as before.",
            )  # fmt: skip
        return found

    def _refused(self, answer: object) -> SignInFailure:
        """The words of the provider are shown: they say whether the code, the client or its secret is wrong."""
        said = answer.get("error") if isinstance(answer, dict) else None
        shown = f": {said[:100]}" if isinstance(said, str) and said.isascii() and said.isprintable() else ""
        if said in ("invalid_client", "unauthorized_client"):
            return SignInFailure(
                503, "Single sign-on is not set up", f"{self.config.name} does not accept Ork as a client{shown}.",
                "An admin of Ork has to check `client_id` and `client_secret`. Tokens work as before.",
            )  # fmt: skip
        return start_again(f"{self.config.name} does not accept the code{shown}")

    async def _fetch_metadata(self) -> Metadata:
        from authlib.oidc.discovery import get_well_known_url

        issuer = self.config.issuer
        status, found = await self._ask(
            get_well_known_url(issuer, external=True), "GET", {"Accept": "application/json"}
        )
        if status != 200 or not isinstance(found, dict):
            raise self._away(f"its discovery document answered {status}")
        if found.get("issuer") != issuer:
            said = str(found.get("issuer"))[:200]
            raise wrong_answer(f"the discovery document is of another issuer, {said!r} instead of {issuer!r}")
        is_plain = issuer.startswith("http://")
        methods = found.get("token_endpoint_auth_methods_supported")
        return Metadata(
            _endpoint(found, "authorization_endpoint", is_plain),
            _endpoint(found, "token_endpoint", is_plain),
            _endpoint(found, "jwks_uri", is_plain),
            _endpoint(found, "userinfo_endpoint", is_plain) if found.get("userinfo_endpoint") else None,
            tuple(map(str, methods)) if isinstance(methods, list) else ("client_secret_basic",),
            found.get("authorization_response_iss_parameter_supported") is True,
        )

    async def _fetch_keys(self) -> list[dict[str, Any]]:
        status, found = await self._ask((await self.metadata()).keys, "GET", {"Accept": "application/json"})
        keys = found.get("keys") if isinstance(found, dict) else None
        if status != 200 or not isinstance(keys, list):
            raise self._away(f"its keys cannot be read: status {status}")
        return [key for key in keys if isinstance(key, dict)]

    async def _ask(
        self, url: str, method: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> tuple[int, Any]:
        """The status and the decoded body; None if it is not JSON. Redirects are not followed."""
        from ork.outbound.fetch import fetch

        try:
            answer = await fetch(
                url, self._rule, method=method, headers=headers, body=body, timeout=REQUEST_SECONDS, limit=MAX_BYTES, redirects=0
            )  # fmt: skip
        except (NoResponseError, BlockedAddressError) as error:
            raise self._away(error.message) from None
        except ValueError as error:
            raise wrong_answer(f"an address of the provider cannot be used: {error}") from None
        try:
            return answer.status, json.loads(answer.body)
        except ValueError:
            return answer.status, None

    def _away(self, why: str) -> SignInFailure:
        return provider_away(self.config.name, why)


class _Kept(Generic[T]):
    """A value that is fetched when it is needed and kept for a while. If it cannot be fetched again, the old one is used."""

    def __init__(self, seconds: float, fetch: Callable[[], Any], monotonic: Callable[[], float]) -> None:
        self._seconds = seconds
        self._fetch = fetch
        self._monotonic = monotonic
        self._lock = asyncio.Lock()
        self._value: T | None = None
        self._fetched_at = 0.0
        self._failure: tuple[float, SignInFailure] | None = None

    async def get(self, *, fresh: bool = False) -> T:
        asked_at = self._monotonic()
        async with self._lock:
            now = self._monotonic()
            is_old = now - self._fetched_at >= self._seconds or (fresh and self._fetched_at < asked_at)
            if self._value is not None and not is_old:
                return self._value
            if self._failure is not None and now < self._failure[0]:
                if self._value is not None:
                    return self._value
                raise self._failure[1]
            try:
                self._value, self._fetched_at, self._failure = await self._fetch(), now, None
            except SignInFailure as failure:
                self._failure = (self._monotonic() + AWAY_SECONDS, failure)
                if self._value is None or failure.status != 503:
                    raise
            assert self._value is not None
            return self._value


def _own_host(issuer: str) -> Allowed:
    parts = urlsplit(issuer)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return parse_allowed(f"{host}:{parts.port or _PORTS[parts.scheme]}")


def _endpoint(found: Mapping[str, Any], name: str, is_plain: bool) -> str:
    """An absolute address; over TLS unless the issuer itself is on this machine."""
    url = found.get(name)
    if not isinstance(url, str) or not url.startswith(("https://", "http://") if is_plain else "https://"):
        raise wrong_answer(f"`{name}` of the discovery document is not an https address")
    return url


def _credentials(client_id: str, secret: str | None, methods: tuple[str, ...]) -> tuple[str, str | None, str]:
    """Id, secret and method for the token endpoint. The header encodes both, as the standard says (RFC 6749, 2.3.1)."""
    if secret is None:
        return client_id, None, "none"
    if "client_secret_basic" in methods or "client_secret_post" not in methods:
        return quote_plus(client_id), quote_plus(secret), "client_secret_basic"
    return client_id, secret, "client_secret_post"

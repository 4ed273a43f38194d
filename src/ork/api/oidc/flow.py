"""One sign-in, from the button to the provider's answer. All of it is in a signed cookie of the browser that began it.

The cookie holds a random text and where to go back to. State, nonce and PKCE verifier are derived from that text with the
store's key, so that any server on the store can complete the sign-in, and nobody who sees the cookie can.
"""

from __future__ import annotations

import re
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable
from datetime import datetime
from hmac import compare_digest
from typing import NamedTuple
from urllib.parse import quote

from starlette.responses import Response

from ork.api.sessions import Site
from ork.api.signing import KeyStore, StoreKeySigner

SECONDS = 600
_COOKIE_SECONDS = 86_400  # longer, so that a page that was left open knows what it was for
PATH = "/ui/oidc/"
HOME = "/ui/"
_LONGEST_BACK = 1500
_COOKIE = re.compile(
    r"(?P<random>[\w-]{22})\.(?P<ends>\d{1,12})\.(?P<back>[\w-]{0,2000})\.(?P<signature>[\w-]{43})", re.ASCII
)
# A path of the web UI, as browsers send it: no host, no backslash, nothing that a browser would turn into either.
_TEXT = r"[\w!$&'()*+,;=:@%./~?\[\]{}|^-]*"
_BACK = re.compile(rf"/ui/{_TEXT}(#{_TEXT})?", re.ASCII)


class SignOnFlow(NamedTuple):
    random: str
    ends: int
    back: str
    state: str
    nonce: str
    verifier: str

    def has_ended(self, now: datetime) -> bool:
        return now.timestamp() >= self.ends

    def opened_with(self, ticket: str) -> str:
        """Where the browser goes, with the ticket behind `#`, and behind it what stood there before."""
        path, _, rest = self.back.partition("#")
        return f"{path}#ticket={ticket}" + (f"&then={quote(rest, safe='')}" if rest else "")


class Flows:
    """Of one provider and client: a sign-in that began with others cannot be completed."""

    def __init__(self, store: KeyStore, issuer: str, client_id: str) -> None:
        self._signer = StoreKeySigner(store, "oidc")
        self._client = (issuer, client_id)

    async def begin(self, back: str, port: int, now: datetime) -> tuple[SignOnFlow, str]:
        """A new sign-in, and the cookie for it."""
        flow = await self._flow(secrets.token_urlsafe(16), int(now.timestamp()) + SECONDS, back, port)
        kept = urlsafe_b64encode(back.encode()).rstrip(b"=").decode()
        signature = await self._sign("cookie", flow.random, flow.ends, back, port)
        return flow, f"{flow.random}.{flow.ends}.{kept}.{signature}"

    async def find(self, cookies: Iterable[str], state: str, port: int) -> SignOnFlow | None:
        """The sign-in that this browser began with this state; it may have ended."""
        for flow in await self._begun(cookies, port):
            if compare_digest(flow.state.encode(), state.encode()):
                return flow
        return None

    async def back(self, cookies: Iterable[str], port: int) -> str:
        """The page that the person wanted to see when this browser began a sign-in; HOME if it did not begin one."""
        return next((flow.back for flow in await self._begun(cookies, port)), HOME)

    async def _begun(self, cookies: Iterable[str], port: int) -> list[SignOnFlow]:
        """The sign-ins that this browser began; they may have ended."""
        begun = []
        for found in filter(None, map(_COOKIE.fullmatch, cookies)):
            back = _decoded(found["back"])
            flow = await self._flow(found["random"], int(found["ends"]), back, port)
            signature = await self._sign("cookie", flow.random, flow.ends, back, port)
            if compare_digest(signature.encode(), found["signature"].encode()):
                begun.append(flow)
        return begun

    async def _flow(self, random: str, ends: int, back: str, port: int) -> SignOnFlow:
        state, nonce, verifier = [await self._sign(use, random, port) for use in ("state", "nonce", "verifier")]
        return SignOnFlow(random, ends, back, state, nonce, verifier)

    async def _sign(self, use: str, *parts: str | int) -> str:
        return await self._signer.sign(use, *self._client, *parts)


def safe_back(text: str | None) -> str:
    """The address to return to, if it is one of this web UI; else its first page."""
    if text is None or len(text) > _LONGEST_BACK or _BACK.fullmatch(text) is None or "//" in text.partition("?")[0]:
        return HOME
    path = text.partition("#")[0].partition("?")[0].lower()
    is_elsewhere = path.startswith(PATH) or any(
        part in (".", "..", "%2e", "%2e%2e", ".%2e", "%2e.") for part in path.split("/")
    )
    return HOME if is_elsewhere else text


def cookie_name(site: Site) -> str:
    return "__Host-ork-oidc" if site.scheme == "https" else f"ork_oidc_{site.port}"


def put_cookie(response: Response, site: Site, value: str, seconds: int = _COOKIE_SECONDS) -> None:
    """`Lax`: the browser sends it when the provider sends the person back, which is a link from another site."""
    is_secure = site.scheme == "https"
    path = "/" if is_secure else PATH  # the prefix __Host- requires /
    response.set_cookie(cookie_name(site), value, seconds, path=path, secure=is_secure, httponly=True, samesite="lax")


def _decoded(text: str) -> str:
    try:
        return urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
    except ValueError:
        return HOME

"""Sessions of browsers, in two halves: a cookie, and a value that the page keeps. Neither works alone.

Browsers send the cookies of a host to each of its ports, so that another program on the machine may receive ours. They
do not send it the page's half. A session is signed and not stored: it works while its token does, for 12 hours at most.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from urllib.parse import urlsplit

from starlette.responses import Response

from ork.api.signing import KeyStore, StoreKeySigner
from ork.model.access import Token

HEADER = "x-ork-session"
LIFETIME = timedelta(hours=12)
_PORTS = {"http": 80, "https": 443}
# Another program on the host can set cookies of our cookie's name. More than this many are not tried.
_COOKIES_TRIED = 5
_COOKIE = re.compile(
    r"(?P<digest>[0-9a-f]{64})\.(?P<ends>\d{1,12})\.(?P<random>[\w-]{22})\.(?P<signature>[\w-]{43})", re.ASCII
)
_HALF = re.compile(r"[\w-]{43}", re.ASCII)


class Site(NamedTuple):
    """The scheme and port of the address by which the browser reaches the server."""

    scheme: str
    port: int

    @property
    def cookie(self) -> str:
        return "__Host-ork" if self.scheme == "https" else f"ork_{self.port}"

    @property
    def cookie_path(self) -> str:
        return "/" if self.scheme == "https" else "/api/"  # the prefix __Host- requires /


class BrowserSession(NamedTuple):
    digest: str
    ends: datetime


class NewSession(NamedTuple):
    """`half` is for the page, in the body of the response; `cookie` is for the browser."""

    half: str
    cookie: str
    ends: datetime


class Sessions:
    def __init__(self, store: KeyStore) -> None:
        self._signer = StoreKeySigner(store, "session")

    async def begin(self, token: Token, port: int, now: datetime) -> NewSession:
        ends = min(now + LIFETIME, token.expires_at or now + LIFETIME)
        half, random, until = secrets.token_urlsafe(32), secrets.token_urlsafe(16), int(ends.timestamp())
        signature = await self._signer.sign(token.digest, until, random, half, port)
        cookie = f"{token.digest}.{until}.{random}.{signature}"
        return NewSession(half, cookie, datetime.fromtimestamp(until, UTC))

    async def find(self, cookies: Iterable[str], half: str, port: int) -> BrowserSession | None:
        """The session of these two halves; it may have ended, or its token may be revoked."""
        if _HALF.fullmatch(half) is None:
            return None
        for found in filter(None, map(_COOKIE.fullmatch, cookies)):
            digest, ends, random = found["digest"], int(found["ends"]), found["random"]
            if await self._signer.is_signed(found["signature"], digest, ends, random, half, port):
                return BrowserSession(digest, datetime.fromtimestamp(ends, UTC))
        return None


def site_of(headers: Mapping[str, str], scheme: str) -> Site:
    """The guard has checked that the host is valid."""
    return Site(scheme, urlsplit(f"//{headers.get('host', '')}").port or _PORTS.get(scheme, 0))


def cookies_named(name: str, headers: Iterable[tuple[bytes, bytes]]) -> list[str]:
    """The values of all cookies of this name."""
    lists = [value.decode("latin-1") for key, value in headers if key == b"cookie"]
    pairs = [each.strip().partition("=") for each in ";".join(lists).split(";")]
    return [value for key, _, value in pairs if key == name][:_COOKIES_TRIED]


def set_cookie(response: Response, site: Site, session: NewSession, now: datetime) -> None:
    _put(response, site, session.cookie, max(int((session.ends - now).total_seconds()), 0))


def delete_cookie(response: Response, site: Site) -> None:
    _put(response, site, "", 0)


def _put(response: Response, site: Site, value: str, seconds: int) -> None:
    is_secure = site.scheme == "https"
    response.set_cookie(
        site.cookie, value, seconds, path=site.cookie_path, secure=is_secure, httponly=True, samesite="strict"
    )

"""Sends one HTTP request with limits on time, size, redirects and addresses."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from urllib.parse import urljoin

import httpx2

from ork.model.outbound import OutboundRule
from ork.outbound.addresses import NoResponseError, check_url
from ork.outbound.checked import CheckedTransport
from ork.outbound.clients import async_client, proxy_for, reason, shown_proxy, transport_to
from ork.sdk.web import LIMIT, HttpResponse

MAX_REDIRECTS = 5
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_CREDENTIALS = frozenset({"authorization", "cookie", "proxy-authorization"})
_BODY_HEADERS = frozenset({"content-type", "content-length", "content-encoding"})


class FetchedResponse(HttpResponse):
    __slots__ = ("headers",)

    def __init__(self, status: int, headers: httpx2.Headers, body: bytes) -> None:
        super().__init__(status, headers.get("content-type") or "", body)
        self.headers = headers


async def fetch(
    url: str,
    rule: OutboundRule | None,
    *,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    secret_headers: Collection[str] = (),
    body: bytes | None = None,
    timeout: float = 30.0,
    limit: int = LIMIT,
    redirects: int = MAX_REDIRECTS,
) -> FetchedResponse:
    """The response, whatever its status. Credentials and `secret_headers` are not sent to another origin.

    `rule` None permits every address. `timeout` includes redirects. ValueError: invalid URL or header.
    BlockedAddressError: not permitted. NoResponseError: a retry may help.
    """
    deadline = asyncio.get_running_loop().time() + timeout
    current, sent = _parsed(url), dict(headers or {})
    private = _CREDENTIALS | {name.lower() for name in secret_headers}
    for left in range(redirects, -1, -1):
        try:
            async with asyncio.timeout_at(deadline):
                response = await _send(current, rule, method, sent, body, limit)
        except TimeoutError:
            raise NoResponseError(f"no response from {_shown(current)} in time") from None
        target = response.headers.get("location") if response.status in _REDIRECTS else None
        if target is None or left == 0:
            return response
        following = _parsed(urljoin(str(current), target))
        if following.origin != current.origin:
            sent = {name: value for name, value in sent.items() if name.lower() not in private}
        if response.status == 303 or (response.status in (301, 302) and method == "POST"):
            method, body = "GET", None
            sent = {name: value for name, value in sent.items() if name.lower() not in _BODY_HEADERS}
        current = following
    raise AssertionError("unreachable")


async def _send(
    url: httpx2.URL, rule: OutboundRule | None, method: str, headers: Mapping[str, str], body: bytes | None, limit: int
) -> FetchedResponse:
    text = str(url)
    transport = transport_to(text, proxy=proxy_for(text)) if rule is None else CheckedTransport(text, rule)
    try:
        async with (
            async_client(transport) as client,
            client.stream(method, url, headers=_encoded(headers), content=body) as response,
        ):
            return FetchedResponse(response.status_code, response.headers, await _body(response, limit, url))
    except httpx2.LocalProtocolError:  # its message would repeat the header, which may be a secret
        raise ValueError("a header or the method is not valid in HTTP") from None
    except httpx2.HTTPError as error:
        proxy = shown_proxy(text) if rule is None else ""
        raise NoResponseError(f"no response from {_shown(url)}{proxy}: {reason(error)}") from None


async def _body(response: httpx2.Response, limit: int, url: httpx2.URL) -> bytes:
    data = bytearray()
    async for part in response.aiter_raw():
        data += part
        if len(data) > limit:
            raise NoResponseError(f"the response from {_shown(url)} has more than {limit} bytes")
    return bytes(data)


def _parsed(url: str) -> httpx2.URL:
    check_url(url)
    try:
        return httpx2.URL(url)
    except httpx2.InvalidURL:
        raise ValueError("it is not an http or https URL") from None


def _encoded(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    try:
        return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    except UnicodeEncodeError:
        raise ValueError("a header has characters that HTTP cannot send") from None


def _shown(url: httpx2.URL) -> str:
    """Host and port only, because the rest of a URL may contain secrets."""
    return url.netloc.decode("ascii")

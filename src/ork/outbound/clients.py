"""HTTP clients (httpx2) with one set of defaults for TLS, proxies and timeouts. None of them follows redirects.

Importing httpx2 takes about a tenth of a second: import this module only where a request is about to be sent.
"""

from __future__ import annotations

import functools
import ipaddress
import logging
import os
import ssl
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx2

from ork.errors import UsageError

CONNECT_SECONDS = 10.0
# No compression, so that limits on the size of a body apply to the received bytes.
_HEADERS = {"User-Agent": "ork", "Accept-Encoding": "identity"}
# Both libraries log URLs and headers, which may contain secrets.
for _library in ("httpx2", "httpcore2"):
    logging.getLogger(_library).setLevel(logging.WARNING)
_NO_REUSE = httpx2.Limits(max_connections=None, max_keepalive_connections=0)


def blocking_client(url: str, *, seconds: float) -> httpx2.Client:
    """A client for one server that reuses its connection. `seconds` limits each step: connect, send, receive."""
    return httpx2.Client(
        headers=_HEADERS, timeout=_timeout(seconds), verify=tls_for(url), proxy=proxy_for(url), trust_env=False
    )


def async_client(transport: httpx2.AsyncBaseTransport, *, seconds: float | None = None) -> httpx2.AsyncClient:
    """An async client. `seconds` limits each step; by default only connecting is limited, for streams that pause."""
    headers = {**_HEADERS, "Connection": "close"}
    return httpx2.AsyncClient(transport=transport, headers=headers, timeout=_timeout(seconds), trust_env=False)


def transport_to(
    url: str, *, proxy: httpx2.Proxy | None = None, socket: str | None = None, tls: ssl.SSLContext | None = None
) -> httpx2.AsyncHTTPTransport:
    """A transport that opens a connection for each request, through a Unix socket if `socket` is given."""
    return httpx2.AsyncHTTPTransport(
        verify=tls or tls_for(url), limits=_NO_REUSE, proxy=proxy, uds=socket, trust_env=False
    )


def _timeout(seconds: float | None) -> httpx2.Timeout:
    return httpx2.Timeout(seconds, connect=CONNECT_SECONDS)


# ── TLS ──────────────────────────────────────────────────────────────────────────────────────────


def tls_for(url: str) -> ssl.SSLContext:
    """A context with the system's certificate authorities, or those in SSL_CERT_FILE; an empty one for plain http."""
    return _system_tls() if url.startswith("https:") else _no_tls()


@functools.cache
def _system_tls() -> ssl.SSLContext:
    return httpx2.create_ssl_context()


@functools.cache
def _no_tls() -> ssl.SSLContext:
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


# ── proxies ──────────────────────────────────────────────────────────────────────────────────────


def proxy_for(url: str) -> httpx2.Proxy | None:
    """The proxy in HTTP_PROXY, HTTPS_PROXY or ALL_PROXY, unless NO_PROXY or loopback applies. SOCKS is not supported."""
    proxies = getproxies()
    parts = urlsplit(url)
    proxy = proxies.get(parts.scheme) or proxies.get("all") or ""
    if proxy and "://" not in proxy:
        proxy = f"http://{proxy}"
    host = parts.hostname or ""
    if not proxy.startswith(("http://", "https://")) or _goes_direct(host, proxies.get("no", "")):
        return None
    if proxy_bypass(host):
        return None
    try:
        return httpx2.Proxy(proxy)
    except (httpx2.InvalidURL, ValueError):
        name = f"{parts.scheme.upper()}_PROXY or ALL_PROXY"
        raise UsageError(f"the proxy in {name} is not a URL", hint="write http://HOST:PORT") from None


def shown_proxy(url: str) -> str:
    """For messages: ` through the proxy HOST:PORT`, or an empty string without a proxy."""
    proxy = proxy_for(url)
    return f" through the proxy {proxy.url.netloc.decode('ascii')}" if proxy else ""


def _goes_direct(host: str, no_proxy: str) -> bool:
    """Whether the host is loopback or in a network that NO_PROXY lists."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
    return address.is_loopback or any(_is_in(address, entry.strip()) for entry in no_proxy.split(","))


def _is_in(address: ipaddress.IPv4Address | ipaddress.IPv6Address, network: str) -> bool:
    try:
        return address in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False


# ── errors ───────────────────────────────────────────────────────────────────────────────────────


def reason(error: httpx2.HTTPError) -> str:
    """Why a request failed, as the system's error message if there is one: `Connection refused`."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, BaseExceptionGroup):
            cause = cause.exceptions[0]
        if isinstance(cause, OSError) and cause.errno and cause.strerror:
            is_of_system = cause.errno > 0 and not isinstance(cause, ssl.SSLError)
            return os.strerror(cause.errno) if is_of_system else cause.strerror
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, httpx2.TimeoutException):
        return "timed out"
    return str(error) or type(error).__name__

"""Which addresses an outgoing call may reach: a URL in a setting must not become a way into the network we are in."""

from __future__ import annotations

import http.client
import ipaddress
import socket
import ssl
from urllib.parse import SplitResult, urlsplit


class NotSentError(Exception):
    """A sentence saying why. It names no URL: addresses may carry secrets."""


def check_url(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        is_whole = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_whole = False
    if not is_whole or not url.isprintable() or " " in url:
        raise NotSentError("its address is not an http or https URL")
    return parts


def open_connection(parts: SplitResult, *, allow_private: bool, timeout: float) -> http.client.HTTPConnection:
    """Connected to the very address that was checked: a name that changes its answer in between gains nothing."""
    host = parts.hostname or ""
    secure = parts.scheme == "https"
    port = parts.port or (443 if secure else 80)
    address = _resolve(host, port, allow_private)
    connection = http.client.HTTPConnection(host, port, timeout=timeout)
    try:
        plain = socket.create_connection((address, port), timeout)
        try:
            connection.sock = ssl.create_default_context().wrap_socket(plain, server_hostname=host) if secure else plain
        except BaseException:
            plain.close()
            raise
    except OSError as error:
        raise NotSentError(f"no answer from {host}: {error}") from error
    return connection


def is_public(address: str) -> bool:
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
        if inner is not None:
            return is_public(str(inner))
        if ip in ipaddress.ip_network("64:ff9b::/96"):
            return is_public(str(ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)))
    return ip.is_global and not ip.is_multicast


def _resolve(host: str, port: int, allow_private: bool) -> str:
    try:
        found = [str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    except OSError as error:
        raise NotSentError(f"{host} has no address: {error}") from error
    allowed = [address for address in found if allow_private or is_public(address)]
    if not allowed:
        raise NotSentError(f"{host} is a private address; set `alerts_allow_private: true` in ork.yaml to allow it")
    return allowed[0]

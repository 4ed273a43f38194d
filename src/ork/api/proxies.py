"""The client address, scheme and host of a request that came through a reverse proxy.

Any client can send `X-Forwarded-For`, `-Proto` and `-Host`. They are trusted only on connections from configured proxies;
there are none by default.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TypeAlias

from starlette.types import Scope

from ork.errors import UsageError

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

_SCHEMES = ("http", "https")


class TrustedProxies:
    def __init__(self, networks: Iterable[str] = ()) -> None:
        self._networks = tuple(network_of(text) for text in networks)

    def as_sent(self, scope: Scope) -> Scope:
        """The scope with the address, scheme and host that the client used."""
        peer = address_of((scope.get("client") or ("", 0))[0])
        if peer is None or not self.includes(peer):
            return scope
        client = self._client(peer, _values(scope, b"x-forwarded-for"))
        scheme = (_values(scope, b"x-forwarded-proto") or [""])[-1].lower()
        host = (_values(scope, b"x-forwarded-host") or [""])[-1]
        return {
            **scope,
            "client": (str(client), 0),
            "scheme": scheme if scheme in _SCHEMES else scope["scheme"],
            "headers": _with_host(scope, host) if host else scope["headers"],
        }

    def includes(self, address: Address) -> bool:
        return any(address in network for network in self._networks)

    def _client(self, peer: Address, forwarded: list[str]) -> Address:
        """The last address that is not a trusted proxy; earlier ones may be forged by that client."""
        client = peer
        for text in reversed(forwarded):
            address = address_of(text)
            if address is None:
                break
            client = address
            if not self.includes(address):
                break
        return client


def network_of(text: str) -> Network:
    try:
        return ip_network(text, strict=False)
    except ValueError:
        raise UsageError(
            f"trusted proxy {text[:100]!r} is neither an IP address nor a network",
            hint="write 10.0.0.7 or 10.0.0.0/8",
        ) from None


def address_of(text: str) -> Address | None:
    """Parses an IP address, with optional port or brackets; None if it is invalid."""
    host = text.strip()
    if host.startswith("["):
        host = host[1:].partition("]")[0]
    elif host.count(":") == 1:
        host = host.partition(":")[0]
    try:
        address = ip_address(host)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def _values(scope: Scope, name: bytes) -> list[str]:
    """The header's values in order; repeated headers are joined."""
    lists = [value.decode("latin-1") for key, value in scope["headers"] if key == name]
    return [each.strip() for each in ",".join(lists).split(",") if each.strip()]


def _with_host(scope: Scope, host: str) -> list[tuple[bytes, bytes]]:
    return [*((key, value) for key, value in scope["headers"] if key != b"host"), (b"host", host.encode("latin-1"))]

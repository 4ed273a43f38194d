"""Which addresses the scheduler may connect to: one rule for jobs, alerts and redirects.

Public addresses are allowed. Private, loopback, link-local and other special addresses are rejected unless
`outbound.allow` in ork.yaml lists them: a URL in a workflow must not give access to the scheduler's internal network.
"""

from __future__ import annotations

import ipaddress
from fnmatch import fnmatchcase
from typing import TypeAlias

from ork.model.record import Record

Ip: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

# Special ranges that some supported Python releases report as global.
_NEVER_PUBLIC = tuple(
    map(
        ipaddress.ip_network,
        (
            "0.0.0.0/8",
            "100.64.0.0/10",
            "168.63.129.16/32",
            "192.0.0.0/24",
            "192.88.99.0/24",
            "198.18.0.0/15",
            "240.0.0.0/4",
            "64:ff9b:1::/48",
            "100::/64",
            "2001::/23",
            "fec0::/10",
        ),
    )
)
# Metadata services that return credentials of the machine. Allowing a network does not allow them.
_METADATA = frozenset(
    map(
        ipaddress.ip_address,
        (
            "169.254.169.254",
            "169.254.170.2",
            "169.254.170.23",
            "168.63.129.16",
            "100.100.100.200",
            "192.0.0.192",
            "fd00:ec2::254",
            "fd00:ec2::23",
            "fd20:ce::254",
        ),
    )
)
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_COMPATIBLE = ipaddress.IPv6Network("::/96")
_ISATAP = (0x00005EFE, 0x02005EFE)


class Allowed(Record):
    """One entry of the allow-list: a network or a host name, on one port or all."""

    network: Network | None = None
    host: str | None = None
    port: int | None = None


class OutboundRule(Record):
    """`permits` is called with the resolved address that the connection will use."""

    allow: tuple[Allowed, ...] = ()

    def permits(self, address: str, host: str, port: int) -> bool:
        ip = _parsed(address)
        if ip is None:
            return False
        inner = _innermost(ip)
        if is_public(address):
            return True
        return any(_matches(entry, inner, host, port) for entry in self.allow)


def is_public(address: str) -> bool:
    """True for unicast addresses of the public internet. IPv4 addresses embedded in IPv6 are unwrapped first."""
    ip = _parsed(address)
    if ip is None:
        return False
    inner = _innermost(ip)
    if inner.is_multicast or inner.is_unspecified or inner in _METADATA:
        return False
    return inner.is_global and not any(inner in network for network in _NEVER_PUBLIC)


def parse_allowed(text: str) -> Allowed:
    """Parse `10.0.0.0/8`, `10.1.2.3:8080`, `[fd00::1]:8080`, `jobs.internal` or `*.internal:443`. Raises ValueError."""
    whole = _network(text)
    if whole is not None:
        return Allowed(network=whole)
    place, colon, number = text.rpartition(":")
    port = int(number) if colon and number.isdecimal() and len(number) <= 5 else None
    if colon and (port is None or not 0 < port < 65536):
        raise ValueError(text)
    place = (place if colon else text).removeprefix("[").removesuffix("]")
    network = _network(place)
    if network is not None:
        return Allowed(network=network, port=port)
    if not place or not all(part for part in place.split(".")) or not set(place.lower()) <= _HOST_CHARACTERS:
        raise ValueError(text)
    return Allowed(host=place.lower(), port=port)


_HOST_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_.*")


def _network(text: str) -> Network | None:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None


def _matches(entry: Allowed, ip: Ip, host: str, port: int) -> bool:
    if entry.port is not None and entry.port != port:
        return False
    if entry.network is None:
        return ip not in _METADATA and fnmatchcase(host.lower().rstrip("."), entry.host or "")
    if ip in _METADATA and entry.network.num_addresses > 1:
        return False
    return ip in entry.network


def _parsed(address: str) -> Ip | None:
    try:
        return ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return None


def _innermost(ip: Ip) -> Ip:
    """The IPv4 address embedded in an IPv6 address, else the address itself."""
    if isinstance(ip, ipaddress.IPv4Address):
        return ip
    inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
    if inner is not None:
        return inner
    low = int(ip) & 0xFFFFFFFF
    is_embedded = ip in _NAT64 or (ip in _COMPATIBLE and low > 1) or (int(ip) >> 32) & 0xFFFFFFFF in _ISATAP
    return ipaddress.IPv4Address(low) if is_embedded else ip

"""Resolves hosts, and checks their addresses against the outbound rule."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit

from ork.errors import OrkError

if TYPE_CHECKING:
    from ork.model.outbound import OutboundRule


class BlockedAddressError(OrkError):
    """The rule does not permit the address. A retry does not help; the message says how to allow it."""

    code = "ORK840"


class NoResponseError(OrkError):
    """No usable response; a retry may help. The message names only the host, because the rest of the URL may be secret."""

    code = "ORK841"


def check_url(url: object) -> SplitResult:
    """Parses a complete http or https URL. ValueError, without any part of the URL, if it is something else."""
    problem = "it is not an http or https URL"
    if not isinstance(url, str) or not url.isprintable() or " " in url:
        raise ValueError(problem)
    try:
        parts = urlsplit(url)
        is_whole = bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise ValueError(problem) from None
    if parts.scheme not in ("http", "https") or not is_whole:
        raise ValueError(problem)
    return parts


async def permitted_addresses(host: str, port: int, rule: OutboundRule) -> list[str]:
    """The addresses of the host that the rule permits, in the resolver's order; BlockedAddressError if it permits none."""
    import socket

    from ork.outbound.background import in_thread

    try:
        entries = await in_thread(lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
    except (OSError, UnicodeError) as error:
        raise NoResponseError(f"{host} has no address: {error}") from error
    found = list(dict.fromkeys(str(entry[4][0]) for entry in entries))
    permitted = [address for address in found if rule.permits(address, host, port)]
    if not permitted:
        raise blocked(host, found[0], port)
    return permitted


def blocked(host: str, address: str, port: int) -> BlockedAddressError:
    shown = host if host in ("", address) else f"{host} ({address})"
    return BlockedAddressError(
        f"{shown or address} is not a public address, and Ork connects to others only where ork.yaml allows it: "
        f"add `{allow_line(host or address, port)}` to ork.yaml"
    )


def allow_line(host: str, port: int) -> str:
    """The line for ork.yaml that permits it."""
    entry = f'"[{host}]:{port}"' if ":" in host else f'"{host}:{port}"'
    return f"outbound: {{allow: [{entry}]}}"

"""Connections to addresses that the rule permits, and to no other."""

from __future__ import annotations

import http.client
import socket
import ssl
from urllib.parse import SplitResult, urlsplit

from ork.errors import OrkError
from ork.model.outbound import OutboundRule


class BlockedAddressError(OrkError):
    """The rule does not permit the address. Trying again does not help; the message says how to allow it."""

    code = "ORK840"


class NoAnswerError(OrkError):
    """Nobody answers there. The message names the host, never the rest of the URL: it may hold secrets."""

    code = "ORK841"


def check_url(url: object) -> SplitResult:
    """ValueError for anything but a whole http or https URL. The message repeats nothing of it but its scheme."""
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


def open_connection(parts: SplitResult, rule: OutboundRule, timeout: float) -> http.client.HTTPConnection:
    """Connected to the very address that was checked: a name that resolves differently the next time gains nothing."""
    host, port, secure = parts.hostname or "", port_of(parts), parts.scheme == "https"
    address = permitted_address(host, port, rule)
    connection = http.client.HTTPConnection(host, port, timeout=timeout)
    try:
        plain = socket.create_connection((address, port), timeout)
        try:
            connection.sock = ssl.create_default_context().wrap_socket(plain, server_hostname=host) if secure else plain
        except BaseException:
            plain.close()
            raise
    except OSError as error:
        raise NoAnswerError(f"no answer from {host}: {error}") from error
    return connection


def port_of(parts: SplitResult) -> int:
    return parts.port or (443 if parts.scheme == "https" else 80)


def permitted_address(host: str, port: int, rule: OutboundRule) -> str:
    """The first address of the host that may be connected to."""
    try:
        found = [str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    except (OSError, UnicodeError) as error:
        raise NoAnswerError(f"{host} has no address: {error}") from error
    permitted = next((address for address in found if rule.permits(address, host, port)), None)
    if permitted is None:
        raise blocked(host, found[0], port)
    return permitted


def blocked(host: str, address: str, port: int) -> BlockedAddressError:
    place = host if host in ("", address) else f"{host} ({address})"
    return BlockedAddressError(
        f"{place or address} is not a public address, and Ork connects to others only where ork.yaml allows it: "
        f"add `{allow_line(host or address, port)}` to ork.yaml"
    )


def allow_line(host: str, port: int) -> str:
    """The line for ork.yaml that permits it."""
    entry = f'"[{host}]:{port}"' if ":" in host else f'"{host}:{port}"'
    return f"outbound: {{allow: [{entry}]}}"

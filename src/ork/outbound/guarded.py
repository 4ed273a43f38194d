"""Applies the outbound rule to connections that a library opens.

Python raises an audit event before each connection. The hook checks only threads inside `permitted_connections`.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ork.model.outbound import OutboundRule
from ork.outbound.addresses import BlockedAddressError, blocked

_CONNECTS = frozenset({"socket.connect", "socket.sendto"})


class RefusedConnectionError(OSError):
    """An OSError, so that libraries treat it as a failed connection."""


class ConnectionGuard(threading.local):
    """`refused` is the first connection that the rule did not permit."""

    rule: OutboundRule | None = None
    host = ""  # the last name that this thread resolved
    refused: BlockedAddressError | None = None


_guard = ConnectionGuard()


@contextmanager
def permitted_connections(rule: OutboundRule) -> Iterator[ConnectionGuard]:
    """Applies the rule to sockets that this thread connects inside the block."""
    _install()
    _guard.rule, _guard.host, _guard.refused = rule, "", None
    try:
        yield _guard
    finally:
        _guard.rule = None


@functools.cache
def _install() -> None:
    """Installs the hook once; it cannot be removed."""
    sys.addaudithook(_on_audit_event)


def _on_audit_event(event: str, arguments: tuple[Any, ...]) -> None:
    if _guard.rule is None:
        return
    if event == "socket.getaddrinfo":
        host = arguments[0]
        _guard.host = host.decode("ascii", "replace") if isinstance(host, bytes) else str(host or "")
    elif event in _CONNECTS:
        _check(arguments[1], _guard.rule)


def _check(address: Any, rule: OutboundRule) -> None:
    # A path is a Unix socket.
    ip, port = (str(address[0]), int(address[1])) if isinstance(address, tuple) else (str(address), 0)
    if not rule.permits(ip, _guard.host, port):
        _guard.refused = _guard.refused or blocked(_guard.host, ip, port)
        raise RefusedConnectionError(str(_guard.refused))

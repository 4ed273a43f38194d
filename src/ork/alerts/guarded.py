"""Connections that other people's code makes, held to the rule of our own: no private address unless it is allowed.

A library that knows a hundred services opens sockets where nobody sees them. Python tells an audit hook of each before
it is connected; ours looks only at threads that asked for it.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ork.alerts.addresses import is_public

_EVENTS = frozenset({"socket.connect", "socket.sendto"})


class PrivateAddressError(OSError):
    """So that libraries take it for a connection that failed."""


class Guard(threading.local):
    """`refused` is the first address that was asked for and may not be reached."""

    is_on = False
    refused: str | None = None


_guard = Guard()


@contextmanager
def only_public_addresses() -> Iterator[Guard]:
    """Holds for sockets that this thread connects inside."""
    _install()
    _guard.is_on, _guard.refused = True, None
    try:
        yield _guard
    finally:
        _guard.is_on = False


@functools.cache
def _install() -> None:
    """Once: a hook stays for as long as the process."""
    sys.addaudithook(_look)


def _look(event: str, arguments: tuple[Any, ...]) -> None:
    if event not in _EVENTS or not _guard.is_on:
        return
    address = arguments[1]
    # A path is a service of this very machine; a name was not looked up yet, and could be anything.
    host = str(address[0]) if isinstance(address, tuple) else str(address)
    if not _is_public(host):
        _guard.refused = _guard.refused or host
        raise PrivateAddressError(f"{host} is a private address")


def _is_public(host: str) -> bool:
    try:
        return is_public(host)
    except ValueError:
        return False

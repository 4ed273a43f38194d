"""Parses a store URL: the part for the driver, Ork's own parameters, and the text that may be shown.

Ork's own parameters are `pool_size=N`, `statement_cache_size=N` and `pooler=transaction`.
"""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import parse_qsl, urlencode

from ork.errors import UsageError
from ork.state.urls import without_password

POOL_SIZE = 10
_STATEMENTS_CACHED = 200
_OURS = ("pool_size", "statement_cache_size", "pooler")


class Address(NamedTuple):
    """A parsed URL. `dsns` has one entry per host; `shown` is the URL without its password. Behind a transaction pooler
    a session is shared with other clients: its settings are set in each transaction, no statement is kept prepared, and
    LISTEN does not work."""

    dsns: tuple[str, ...]
    shown: str
    pool_size: int
    statement_cache_size: int
    behind_pooler: bool


def read_address(url: str, pool_size: int | None = None) -> Address:
    place, _, query = url.partition("?")
    pairs = parse_qsl(query, keep_blank_values=True)
    ours = {name: value for name, value in pairs if name in _OURS}
    theirs = [pair for pair in pairs if pair[0] not in _OURS]
    behind_pooler = _pooler(ours.get("pooler"))
    parameters = f"?{urlencode(theirs)}" if theirs else ""
    return Address(
        dsns=tuple(each + parameters for each in _for_each_host(place)),
        shown=without_password(place + parameters),
        pool_size=pool_size or max(1, _number(ours, "pool_size", POOL_SIZE)),
        statement_cache_size=_number(ours, "statement_cache_size", 0 if behind_pooler else _STATEMENTS_CACHED),
        behind_pooler=behind_pooler,
    )


def _for_each_host(place: str) -> list[str]:
    """One DSN per host: `//me@a:1,b:2/db` names the same database on two hosts."""
    scheme, slashes, rest = place.partition("://")
    network, slash, database = rest.partition("/")
    user, at, hosts = network.rpartition("@")
    return [f"{scheme}{slashes}{user}{at}{host}{slash}{database}" for host in hosts.split(",")]


def _number(ours: dict[str, str], name: str, default: int) -> int:
    text = ours.get(name)
    if text is None:
        return default
    if not text.isdecimal():
        raise UsageError(f"{name} in the store's URL must be a number, not {text!r}")
    return int(text)


def _pooler(text: str | None) -> bool:
    if text not in (None, "transaction"):
        raise UsageError(f"pooler in the store's URL can only be `transaction`, not {text!r}")
    return text is not None

"""Requests that a stranger's page or a stranger's name made are not for us."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_OWN_SITES = ("same-origin", "none")


def is_loopback(host: str) -> bool:
    return host in LOOPBACK_NAMES or host.startswith("127.")


class Origins:
    """The names this server goes by, and what a browser says about where a request comes from."""

    def __init__(self, allowed_hosts: Iterable[str] = ()) -> None:
        self._hosts = LOOPBACK_NAMES | {name.lower() for name in allowed_hosts}

    def refusal(self, headers: Mapping[str, str], scheme: str) -> tuple[int, str, str | None] | None:
        """The status that refuses this request, why, and what to do about it; None if it is not refused."""
        host = headers.get("host", "")
        if host_name(host) not in self._hosts:
            # Another name that leads to our address: how a web page would reach a server on this machine.
            hint = "`ork serve --allowed-host NAME` adds a name"
            return 421, f"this server does not go by the name {host[:200]!r}", hint
        origin = headers.get("origin")
        if origin is not None and origin.lower() != f"{scheme}://{host}".lower():
            return 403, f"requests from {origin[:200]!r} are refused", None
        site = headers.get("sec-fetch-site")
        if site is not None and site not in _OWN_SITES:
            return 403, f"requests from another site ({site[:40]!r}) are refused", None
        return None


def host_name(host: str) -> str | None:
    """The name without its port; None for what is no host."""
    try:
        parts = urlsplit(f"//{host}")
        parts.port  # noqa: B018 - raises for a port that is none
    except ValueError:
        return None
    is_host = parts.hostname is not None and not (parts.path or parts.query or parts.fragment or parts.username)
    return parts.hostname if is_host else None

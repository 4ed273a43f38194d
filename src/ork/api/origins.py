"""Rejects requests from other web sites (CSRF) and for other host names (DNS rebinding)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_OWN_SITES = ("same-origin", "none")


def is_loopback(host: str) -> bool:
    return host in LOOPBACK_NAMES or host.startswith("127.")


class Origins:
    """Checks the host name of a request, and the origin that a browser reports."""

    def __init__(self, allowed_hosts: Iterable[str] = ()) -> None:
        self._hosts = LOOPBACK_NAMES | {name.lower() for name in allowed_hosts}

    def refusal(
        self, headers: Mapping[str, str], scheme: str, *, is_page: bool = False
    ) -> tuple[int, str, str | None] | None:
        """The status, reason and hint for a request that is rejected, else None. A page may be opened by a link on
        another site."""
        host = headers.get("host", "")
        if host_name(host) not in self._hosts:
            # A foreign name that resolves to our address is how a web page could reach a local server.
            hint = "`ork serve --allowed-host NAME` adds a name"
            return 421, f"{host[:200]!r} is not a host name of this server", hint
        origin = headers.get("origin")
        if origin is not None and origin.lower() != f"{scheme}://{host}".lower():
            return 403, f"requests from {origin[:200]!r} are refused", None
        site = headers.get("sec-fetch-site")
        if site is not None and site not in _OWN_SITES and not (is_page and _is_navigation(headers)):
            return 403, f"requests from another site ({site[:40]!r}) are refused", None
        return None


def _is_navigation(headers: Mapping[str, str]) -> bool:
    """True if a person opens the address in a tab: not in a frame, and not fetched in advance."""
    opened = (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest"))
    return opened == ("navigate", "document") and "sec-purpose" not in headers


def host_name(host: str) -> str | None:
    """The host name without its port; None if it is invalid."""
    try:
        parts = urlsplit(f"//{host}")
        parts.port  # noqa: B018 - raises if the port is invalid
    except ValueError:
        return None
    is_host = parts.hostname is not None and not (parts.path or parts.query or parts.fragment or parts.username)
    return parts.hostname if is_host else None

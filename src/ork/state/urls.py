"""Store URLs in a form that may be shown."""

from __future__ import annotations

_SECRET = ("password=", "sslpassword=")


def without_password(url: str) -> str:
    if not url.startswith(("postgresql://", "postgres://")):
        return url
    place, mark, query = url.partition("?")
    scheme, slashes, rest = place.partition("://")
    network, slash, database = rest.partition("/")
    user, at, hosts = network.rpartition("@")
    kept = "&".join(pair for pair in query.split("&") if not pair.startswith(_SECRET))
    return f"{scheme}{slashes}{user.partition(':')[0]}{at}{hosts}{slash}{database}{mark if kept else ''}{kept}"

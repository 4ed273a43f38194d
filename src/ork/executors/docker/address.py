"""The address of a container engine: a Unix socket or a TCP port, in the syntax of `DOCKER_HOST`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from ork.errors import UsageError

if TYPE_CHECKING:
    import ssl

DEFAULT = "unix:///var/run/docker.sock"
_PLAIN_PORT, _TLS_PORT = 2375, 2376


class EngineAddress(NamedTuple):
    """`certificates`: a folder with ca.pem, cert.pem and key.pem, as Docker keeps them, for TLS."""

    text: str
    path: str | None = None
    host: str = "localhost"
    port: int = 0
    certificates: str | None = None

    def __str__(self) -> str:
        return self.text

    @property
    def url(self) -> str:
        """The origin of HTTP requests, also over a Unix socket."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.certificates else 'http'}://{host}" + (f":{self.port}" if self.port else "")

    def tls(self) -> ssl.SSLContext | None:
        if self.certificates is None:
            return None
        import ssl

        context = ssl.create_default_context(cafile=os.path.join(self.certificates, "ca.pem"))
        context.load_cert_chain(*(os.path.join(self.certificates, name) for name in ("cert.pem", "key.pem")))
        return context


def engine_address(text: str | None = None, certificates: str | None = None) -> EngineAddress:
    """`unix:///path` or `tcp://host:port`; anything else is a UsageError."""
    text = text or DEFAULT
    parts = urlsplit(text)
    if parts.scheme == "unix" and parts.path.startswith("/") and not parts.netloc:
        return EngineAddress(text, path=parts.path)
    try:
        port = parts.port
    except ValueError:
        port = -1
    if parts.scheme != "tcp" or not parts.hostname or parts.path.strip("/") or port == -1:
        hint = "write unix:///var/run/docker.sock or tcp://HOST:PORT"
        raise UsageError(f"`{text}` is not the address of a container engine", hint=hint)
    port = port or (_TLS_PORT if certificates else _PLAIN_PORT)
    return EngineAddress(text, host=parts.hostname, port=port, certificates=certificates)

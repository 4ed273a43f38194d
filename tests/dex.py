"""Dex, a real provider of OpenID Connect, on loopback: one person with a group, two without."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.buckets import cached

CLIENT, SECRET = "ork", "the secret of the client: 1+1"
PASSWORD = "let me in please"
_HASH = "$2b$10$o7VMRrcaldOqeQ6PYCURme6UMurVlxKQJnts73TNAzQKOM44EIY0y"
WITH_GROUP, GROUP = "kilgore@kilgore.trout", "authors"  # whom Dex's connector for tests signs in, without a password
START_SECONDS = 60.0


def missing() -> str | None:
    """Why Dex cannot be started; None if it can."""
    folder = cached("dex-*")
    return (
        None
        if (folder / "dex").exists()
        else f"{folder.name} is not built: `scripts/components.sh dex` builds it with Go"
    )


@contextmanager
def dex(folder: Path, port: int, redirects: Sequence[str], people: Sequence[str]) -> Iterator[str]:
    """The issuer, while it runs. `people` have a password, and no groups."""
    issuer = f"http://127.0.0.1:{port}/dex"
    config = {
        "issuer": issuer,
        "storage": {"type": "memory"},
        "web": {"http": f"127.0.0.1:{port}"},
        "oauth2": {"skipApprovalScreen": True},
        "connectors": [{"type": "mockCallback", "id": "mock", "name": "Example"}],
        "enablePasswordDB": True,
        "staticPasswords": [
            {"email": each, "hash": _HASH, "username": each.partition("@")[0], "userID": f"id of {each}"}
            for each in people
        ],
        "staticClients": [{"id": CLIENT, "name": "Ork", "secret": SECRET, "redirectURIs": list(redirects)}],
        "logger": {"level": "error"},
    }
    file, log = folder / "dex.json", folder / "dex.log"
    file.write_text(json.dumps(config))  # JSON is YAML
    with log.open("wb") as output:
        process = subprocess.Popen([cached("dex-*") / "dex", "serve", file], stdout=output, stderr=output)
    try:
        _wait(f"{issuer}/.well-known/openid-configuration", process, log)
        yield issuer
    finally:
        process.terminate()
        process.wait(30)


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + START_SECONDS
    while True:
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return
        except (urllib.error.URLError, OSError):
            if process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"Dex does not start: {log.read_text()[-500:]}") from None
            time.sleep(0.1)

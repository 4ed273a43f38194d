"""Dex, a real provider of OpenID Connect, on loopback, configured as in examples/single_sign_on."""

from __future__ import annotations

import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.buckets import cached

EXAMPLE = Path(__file__).parents[1] / "examples" / "single_sign_on"
PROVIDER, ORK = "127.0.0.1:5556", "127.0.0.1:8700"  # where they are in the example
SECRET = "a secret for trying things out"
PASSWORD = "let me in please"
WITH_GROUP, BY_DOMAIN, WITHOUT_ROLE = "kilgore@kilgore.trout", "ada@example.com", "eve@example.net"
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
def dex(folder: Path, provider: str, ork: str) -> Iterator[None]:
    """Dex as in the example, but at the address `provider`, for the server at `ork`."""
    file, log = folder / "dex.yaml", folder / "dex.log"
    file.write_text((EXAMPLE / "dex.yaml").read_text().replace(PROVIDER, provider).replace(ORK, ork))
    with log.open("wb") as output:
        process = subprocess.Popen([cached("dex-*") / "dex", "serve", file], stdout=output, stderr=output)
    try:
        _wait(f"http://{provider}/dex/.well-known/openid-configuration", process, log)
        yield
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

"""A real `ork serve` in a process of its own, and how a test speaks to it."""

from __future__ import annotations

import http.client
import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class Served:
    """One `ork serve` that has said it is ready."""

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert "ready" in line, process.communicate()
        self.process = process
        self.url = line.partition("url=")[2].split()[0] if "url=" in line else ""
        file = folder / ".ork/token"
        self.token = file.read_text().strip() if file.exists() else ""

    @property
    def remote(self) -> dict[str, str]:
        """The environment of a command line that goes through this server."""
        return {"ORK_SERVER": self.url, "ORK_TOKEN": self.token}

    def connect(self) -> http.client.HTTPConnection:
        host, _, port = self.url.partition("://")[2].rpartition(":")
        return http.client.HTTPConnection(host, int(port), timeout=30)

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        connection = self.connect()
        given = {"Authorization": f"Bearer {self.token}", **headers}
        connection.request(method, f"/api/v1{path}", None if body is None else json.dumps(body), given)
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        return answer.status, json.loads(data) if "json" in (answer.headers["content-type"] or "") else data

    def stop(self) -> str:
        """What it said on stderr; it must have ended well."""
        self.process.send_signal(signal.SIGTERM)
        _, said = self.process.communicate(timeout=60)
        assert self.process.returncode == 0, said
        return said


def start_ork(folder: Path, environment: dict[str, str], *args: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "ork", *args],
        cwd=folder, env=environment, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def scheduler_token(folder: Path, environment: dict[str, str], inside: Sequence[str] = ()) -> str:
    """A token for a scheduler on another machine."""
    words = [*inside, sys.executable, "-m", "ork", "token", "create", "--role", "scheduler"]
    return subprocess.run(words, cwd=folder, env=environment, check=True, capture_output=True, text=True).stdout.strip()


@contextmanager
def serving(folder: Path, environment: dict[str, str], *args: str) -> Iterator[Served]:
    """`ork serve` on a free port; whatever became of it, it is gone afterwards."""
    process = start_ork(folder, environment, "serve", "--port", "0", *args)
    try:
        yield Served(process, folder)
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()

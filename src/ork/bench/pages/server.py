"""`ork serve` on a project, as a measurement or a test starts and asks it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ork.bench.processes import ORK, MeasuredProcessError

SECONDS = 60.0  # for an answer: the machine may be busy


class PageServer:
    """`ork serve` on a free port. `url` has no slash at its end."""

    def __init__(self, folder: Path, environment: Mapping[str, str], *options: str, port: int = 0) -> None:
        self.folder, self.environment = folder, environment
        self._process = subprocess.Popen(
            (*ORK, "serve", "--port", str(port), *options), cwd=folder, env=dict(environment), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        self.url = self._announced()
        self.token = (folder / ".ork" / "token").read_text().strip()

    def _announced(self) -> str:
        assert self._process.stdout is not None
        said = []
        for line in self._process.stdout:
            said.append(line)
            if "url=" in line:
                return line.partition("url=")[2].split()[0].rstrip("/")
        raise MeasuredProcessError("ork serve did not start: " + "".join(said))

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def close(self) -> None:
        self._process.terminate()
        self._process.communicate(timeout=SECONDS)

    def call(self, method: str, path: str, body: object = None, token: str | None = None) -> Any:
        """The response of the API."""
        import httpx2

        headers = {"Authorization": f"Bearer {token or self.token}"}
        with httpx2.Client(timeout=SECONDS, trust_env=False) as client:
            answer = client.request(method, f"{self.url}/api/v1{path}", json=body, headers=headers)
        answer.raise_for_status()
        return json.loads(answer.content or b"null")

    def get(self, path: str) -> Any:
        return self.call("GET", path)

    def post(self, path: str, body: object = None, token: str | None = None) -> Any:
        return self.call("POST", path, {} if body is None else body, token)

    def sign_in_address(self, token: str | None = None) -> str:
        """An address that signs a browser in, once."""
        return f"{self.url}/ui/#ticket={self.post('/ui-tickets', token=token)['ticket']}"

    def connections(self) -> int:
        """How many connections to it are open."""
        ends = [line.split()[1:4] for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        return sum(local.endswith(f":{self.port:04X}") and state == _ESTABLISHED for local, _, state in ends)


_ESTABLISHED = "01"

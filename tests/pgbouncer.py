"""A real PgBouncer in front of a test server: it gives each transaction whichever connection is free."""

from __future__ import annotations

import functools
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from tests.postgres import ROOT, Server, as_user, free_port

_SETTINGS = """\
[databases]
* = host={host} port={port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {own_port}
unix_socket_dir =
auth_type = trust
auth_file = {folder}/users
pool_mode = transaction
default_pool_size = {connections}
max_client_conn = 500
server_login_retry = 1
"""


class Bouncer:
    """Few connections for many clients, so that hardly anybody gets the same one twice."""

    def __init__(self, server: Server, connections: int = 4) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="ork-pgbouncer-"))
        self.folder.chmod(0o777)
        self.port = free_port()
        (self.folder / "users").write_text('"ork" ""\n')
        settings = _SETTINGS.format(
            host=server.host, port=server.port, own_port=self.port, folder=self.folder, connections=connections
        )
        (self.folder / "settings.ini").write_text(settings)
        with open(self.folder / "log", "wb") as log:
            command = [*as_user(dies_with_us=True), "pgbouncer", str(self.folder / "settings.ini")]
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        self._wait_until_ready(server.bin)

    def url(self, database: str) -> str:
        return f"postgresql://ork@127.0.0.1:{self.port}/{database}"

    def remove(self) -> None:
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _wait_until_ready(self, bin: Path) -> None:
        while subprocess.run([bin / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)]).returncode != 0:
            if self._process.poll() is not None:
                raise OSError(f"PgBouncer does not start: {(self.folder / 'log').read_text()[-500:]}")
            time.sleep(0.05)


def bouncer_or_skip(server: Server) -> Bouncer:
    if not _is_installed():
        pytest.skip("PgBouncer is not installed and cannot be (scripts/components.sh pgbouncer)")
    return Bouncer(server)


@functools.cache
def _is_installed() -> bool:
    if shutil.which("pgbouncer") is None:
        subprocess.run([ROOT / "scripts/components.sh", "pgbouncer"], capture_output=True)
    return shutil.which("pgbouncer") is not None

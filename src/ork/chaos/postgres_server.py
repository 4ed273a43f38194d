"""A Postgres server of our own in a temporary folder, made of the programs that are on this machine."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

_LOOKS = 600
_LOOK_SECONDS = 0.05


class PostgresServer:
    """Ends when this process does. `inside` is what its command line begins with, `host` its address there.

    It does not wait for the disk: it is killed, but the machine stays."""

    def __init__(
        self, bin: Path, options: Sequence[str] = (), *, host: str = "127.0.0.1", inside: Sequence[str] = ()
    ) -> None:
        self.bin = bin
        self.host = host
        self.inside = inside
        self.folder = Path(tempfile.mkdtemp(prefix="ork-pg-"))
        self.folder.chmod(0o777)
        self.data = self.folder / "data"
        self.log_file = self.folder / "server.log"
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None
        self._options = options
        try:
            self.make_data()
            self.start()
        except BaseException:
            self.remove()
            raise

    def make_data(self) -> None:
        self.call("initdb", "-D", self.data, "-U", "ork", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "-N")

    def start(self) -> None:
        """Start it and wait until it answers. Postgres refuses to run as root, so root becomes another user first."""
        settings = [
            f"-p{self.port}", f"-k{self.folder}", f"-clisten_addresses={self.host}", "-cfsync=off", "-cfull_page_writes=off",
            "-cmax_connections=200", "-cdeadlock_timeout=200ms", "-clog_lock_waits=on", "-clog_line_prefix=%m %d ", *self._options,
        ]  # fmt: skip
        with open(self.log_file, "ab") as log:
            self.process = subprocess.Popen(
                [*self.inside, *as_user(dies_with_us=True), str(self.bin / "postgres"), "-D", str(self.data), *settings],
                stdout=log, stderr=log, cwd=self.folder, start_new_session=True,
            )  # fmt: skip
        self._wait_until_ready()

    def stop(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """SIGQUIT is the immediate shutdown: all clients are cut off, and nothing is finished."""
        assert self.process is not None
        self.process.send_signal(how)
        self.process.wait(30)

    def restart_at_once(self) -> None:
        self.stop()
        self.start()

    def remove(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, database: str, *, port: int | None = None) -> str:
        return f"postgresql://ork@{self.host}:{port or self.port}/{database}"

    def log(self) -> str:
        return self.log_file.read_text(errors="replace")

    def call(self, program: str, *words: object) -> None:
        """Run one of Postgres's programs. OSError with what it says if it fails."""
        done = subprocess.run(
            [*self.inside, *as_user(), str(self.bin / program), *map(str, words)],
            capture_output=True, text=True, cwd=self.folder,
        )  # fmt: skip
        if done.returncode != 0:
            raise OSError(f"{program}: {done.stderr[-500:]}")

    def is_ready(self) -> bool:
        ready = [str(self.bin / "pg_isready"), "-q", "-h", str(self.folder), "-p", str(self.port)]
        return subprocess.run(ready).returncode == 0

    def _wait_until_ready(self) -> None:
        for _ in range(_LOOKS):
            if self.is_ready():
                return
            if self.process is None or self.process.poll() is not None:
                break
            time.sleep(_LOOK_SECONDS)
        raise OSError(f"Postgres does not start: {self.log()[-500:]}")


def programs() -> Path | None:
    """The folder of the newest Postgres on this machine; None if there is none."""
    found = shutil.which("pg_ctl")
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name.split(".")[0]))
    if not folders and found:
        folders = [Path(found).resolve().parent]
    return folders[-1] if folders else None


def as_user(dies_with_us: bool = False) -> list[str]:
    """What a command line begins with to run as a user other than root, and to end when this process does."""
    user = ["--reuid", "postgres", "--regid", "postgres", "--clear-groups"] if os.getuid() == 0 else []
    death = ["--pdeathsig", "QUIT"] if dies_with_us else []
    return ["setpriv", *user, *death] if user or death else []


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])

"""A sandbox: a folder with a project, a ledger, a store of its own, and schedulers that can be killed.

Every process in it has the sandbox's own TMPDIR, which workers and tasks inherit. By that, and by nothing else, it is found and
killed: a process outside of the sandbox is never touched.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from ork.chaos.ledger import Ledger
from ork.executors.local_worker import ATTEMPT_VARIABLE
from ork.executors.processes import Leader, ProcessEntry, attempt_of, family, kill_family, send_signal, tagged_processes
from ork.settings import Settings, load_settings

MARK = "TMPDIR"
# Shorter waits than by default, and long enough for a machine that is busy: a worker that is merely slow must not be given up.
PACE = {
    "ORK_LEASE_SECONDS": "20",
    "ORK_RENEW_SECONDS": "5",
    "ORK_HEARTBEAT_SECONDS": "2",
    "ORK_STALE_SECONDS": "40",
    "ORK_STOP_GRACE_SECONDS": "1",
}
_SEVERAL = "*"  # the tag of a worker that has several attempts
_STOP_LOOKS = 200


class Victim(NamedTuple):
    """A process of an attempt, or one that starts such processes. `attempts` are those that its death affects; `several`: and
    others that it had, which are not known by name."""

    pid: int
    attempts: frozenset[str]
    several: bool = False


class Sandbox:
    """Use as a context manager: at the end everything in it is killed, and its folder removed unless `keep` is set."""

    def __init__(self, *, keep: bool = False) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="ork-chaos-"))
        self.project = self.folder / "project"
        self.project.mkdir()
        self._temporary = self.folder / "tmp"
        self._temporary.mkdir()
        self.ledger = Ledger.create(self.folder / "ledger")
        self.log = self.folder / "schedulers.log"
        self.keep = keep
        self.command: tuple[str, ...] = (sys.executable, "-m", "ork.chaos.child")
        self.variables: dict[str, str] = {}
        self.schedulers: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill_everything()
        if not self.keep:
            shutil.rmtree(self.folder, ignore_errors=True)

    def admit_others(self) -> None:
        """Let another user, whom tasks run as, enter the sandbox and keep temporary files in it."""
        self.folder.chmod(0o711)
        self._temporary.chmod(0o1777)

    def environment(self) -> dict[str, str]:
        """The environment of all processes in the sandbox."""
        return environment(PACE | self.variables | {MARK: str(self._temporary)})

    def settings(self) -> Settings:
        return load_settings(folder=str(self.project), environ=self.environment())

    def start_scheduler(self) -> subprocess.Popen[bytes]:
        """A new scheduler, which dies with this process."""
        with open(self.log, "ab") as log:
            started = subprocess.Popen(
                [*self.command, str(os.getpid()), "scheduler"],
                cwd=self.project,
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for this process alone
            )
        self.schedulers.append(started)
        return started

    def kill_scheduler(self, which: subprocess.Popen[bytes]) -> None:
        which.send_signal(signal.SIGKILL)
        which.wait()
        self.schedulers.remove(which)

    def members(self) -> list[ProcessEntry]:
        """The living processes of the sandbox."""
        mine = str(self._temporary)
        return [process for process in tagged_processes(MARK) if process.attempt == mine]

    def others(self) -> list[ProcessEntry]:
        """Its processes that are not schedulers: fork servers, workers, tasks."""
        schedulers = {scheduler.pid for scheduler in self.schedulers}
        return [process for process in self.members() if process.pid not in schedulers]

    def kill(self, process: ProcessEntry) -> Victim | None:
        """Kills one process. None if it was gone.

        It is suspended first, and so is the worker above it, so that the attempts that its death affects are known exactly: a
        worker that has given its task to a process which dies at that moment has lost that attempt."""
        above = self._above(process)
        halted = [each for each in above if send_signal(each.pid, each.start_time, signal.SIGSTOP)]
        try:
            if not send_signal(process.pid, process.start_time, signal.SIGSTOP):
                return None
            for each in (*halted, process):
                _wait_until_stopped(each.pid)
            concerned = [*halted, *family(self.members(), "", Leader(process.pid, process.start_time))]
            tags = {attempt_of(each.pid, ATTEMPT_VARIABLE) for each in concerned}
            send_signal(process.pid, process.start_time, signal.SIGKILL)
        finally:
            for each in halted:
                send_signal(each.pid, each.start_time, signal.SIGCONT)
        return Victim(process.pid, frozenset(tag for tag in tags if tag and "/" in tag), _SEVERAL in tags)

    def _above(self, process: ProcessEntry) -> list[ProcessEntry]:
        """The processes of the sandbox that it descends from, without schedulers, the uppermost first."""
        known = {each.pid: each for each in self.others()}
        found: list[ProcessEntry] = []
        while (parent := known.get(process.parent)) is not None:
            found.insert(0, parent)
            process = parent
        return found

    def attempts_alive(self) -> dict[int, str]:
        """The living processes that belong to attempts, with the attempts' names."""
        tags = {process.pid: attempt_of(process.pid, ATTEMPT_VARIABLE) for process in self.others()}
        return {pid: tag for pid, tag in tags.items() if tag and "/" in tag}

    def kill_everything(self) -> None:
        for scheduler in list(self.schedulers):
            self.kill_scheduler(scheduler)
        kill_family(self.members)


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    """The caller's environment without settings of Ork and variables that disable bytecode, with these variables."""
    unwanted = ("ORK_", "PYTHONDONT")
    return {name: value for name, value in os.environ.items() if not name.startswith(unwanted)} | dict(variables)


def _wait_until_stopped(pid: int) -> None:
    for _ in range(_STOP_LOOKS):
        try:
            state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
        except OSError:
            return
        if state in (b"T", b"t", b"Z", b"X"):
            return
        time.sleep(0.001)

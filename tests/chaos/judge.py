"""An external judge: every attempt writes to a ledger outside of Ork and holds a lock while it runs (`ork.chaos.ledger`).

The ledger cannot be fooled by what Ork believes: it counts what really started, ended and overlapped.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ork.chaos.ledger import RECORDED, Entry, Ledger, copy_recorder
from ork.chaos.sandbox import environment

FAST = {
    "ORK_LEASE_SECONDS": "6",
    "ORK_RENEW_SECONDS": "2",
    "ORK_HEARTBEAT_SECONDS": "1",
    "ORK_STALE_SECONDS": "6",
    "ORK_STOP_GRACE_SECONDS": "1",
}


@dataclass
class Court:
    """A project with workflows whose tasks report to the ledger. `settings` are more variables for every `ork`; `pace`
    are those of leases and heartbeats: by default all goes ten times as fast as it does for users. `inside` is what
    command lines begin with where there is a network of our own (see `tests.network`)."""

    folder: Path
    settings: dict[str, str] = field(default_factory=dict)
    pace: Mapping[str, str] = field(default_factory=lambda: FAST)
    inside: Sequence[str] = ()

    def __post_init__(self) -> None:
        self._ledger = Ledger.create(self.folder / "judged")
        copy_recorder(self.folder)

    def environment(self) -> dict[str, str]:
        return environment({**self.pace, **self.settings})

    def ork(self, *words: str, inside: Sequence[str] | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self._command(words, inside),
            cwd=self.folder,
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=120,
        )

    def start(
        self, *words: str, inside: Sequence[str] | None = None, log: str = "services.log"
    ) -> subprocess.Popen[bytes]:
        """What it says is added to the log."""
        with open(self.folder / log, "ab") as said:
            return subprocess.Popen(
                self._command(words, inside),
                cwd=self.folder,
                env=self.environment(),
                stdout=said,
                stderr=said,
            )

    def _command(self, words: Sequence[str], inside: Sequence[str] | None) -> list[str]:
        return [*(self.inside if inside is None else inside), sys.executable, "-m", "ork", *words]

    def write_workflow(self, name: str, tasks: dict[str, dict[str, Any]], **fields: Any) -> None:
        (self.folder / f"{name}.yaml").write_text(json.dumps({"name": name, **fields, "tasks": tasks}))

    def deploy(self, name: str, *, inside: Sequence[str] | None = None) -> None:
        done = self.ork("deploy", f"{name}.yaml", inside=inside)
        assert done.returncode == 0, done.stderr

    def task(self, seconds: float, **fields: Any) -> dict[str, Any]:
        words = [sys.executable, RECORDED, "stand-in", str(self.folder / "judged"), str(seconds)]
        return {"command": words, **fields}

    def function(self, seconds: float, **fields: Any) -> dict[str, Any]:
        """The same as a Python function."""
        env = {"CHAOS_LEDGER": str(self.folder / "judged"), "CHAOS_SECONDS": str(seconds)}
        return {"file": RECORDED, "env": env, **fields}

    def trigger(self, name: str) -> str:
        done = self.ork("trigger", name)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def runs(self) -> list[dict[str, Any]]:
        return list(json.loads(self.ork("runs", "--limit", "1000", "--json").stdout)["runs"])

    def run(self, id: str) -> dict[str, Any]:
        return dict(json.loads(self.ork("show", id, "--json").stdout))

    def ledger(self) -> list[tuple[str, str]]:
        """(what, "run task attempt") in the order it was written."""
        return [(entry.what, _short(entry)) for entry in self._ledger.read()]

    def starts(self) -> Counter[str]:
        return Counter(who for what, who in self.ledger() if what == "start")

    def overlaps(self) -> list[str]:
        return [who for what, who in self.ledger() if what == "overlap"]

    def processes(self) -> list[int]:
        """Every living process that belongs to an attempt of this project."""
        marker = str(self.folder / "judged").encode()
        found = []
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                try:
                    command = Path(f"/proc/{entry}/cmdline").read_bytes()
                except OSError:
                    continue
                if marker in command:
                    found.append(int(entry))
        return found


def _short(entry: Entry) -> str:
    run, task, _, number = entry.attempt.split("/")
    return f"{run} {task} {number}"


def eventually(holds: Callable[[], Any], seconds: float = 60.0) -> Any:
    """Waits for a fact about other processes; its value once it is true."""
    deadline = time.monotonic() + seconds
    while not (value := holds()):
        assert time.monotonic() < deadline, f"still not so after {seconds:g} s"
        time.sleep(0.05)
    return value


def kill(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()

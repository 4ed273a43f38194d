"""Writes a whole installation of this release in mid-run: `python -m tests.golden.installation sqlite|postgres`.

Real schedulers and workers bring the project in `<release>/project` into as many states as there are, and are killed. What is
left (the store as SQL, the objects as they are) is kept in `<release>/`, for every later release to open and finish. Run it once
for each release, with that release's own code, never for one that is out.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

FOLDER = Path(__file__).parent
MARK = f"GOLDEN={os.getpid()}"


class Installation:
    """The project in a folder of its own, and the commands of this release."""

    def __init__(self, root: Path, store: str | None) -> None:
        self.root = root
        self.env = {**os.environ, "GOLDEN": MARK.partition("=")[2], "PYTHONDONTWRITEBYTECODE": "1"}
        if store is not None:
            self.env["ORK_STORE"] = store
        self._scheduler: subprocess.Popen[bytes] | None = None

    def ork(self, *words: str) -> str:
        command = [sys.executable, "-m", "ork", *words]
        return subprocess.run(command, cwd=self.root, env=self.env, check=True, capture_output=True, text=True).stdout

    def trigger(self, workflow: str, *words: str) -> str:
        return json.loads(self.ork("trigger", workflow, *words, "--json"))["id"]

    def shown(self, run: str) -> dict:
        return json.loads(self.ork("show", run, "--json"))

    def start_scheduler(self) -> None:
        with open(self.root / "scheduler.log", "ab") as log:
            self._scheduler = subprocess.Popen(
                [sys.executable, "-m", "ork", "scheduler"], cwd=self.root, env=self.env, stdout=log, stderr=log
            )

    def freeze_scheduler(self) -> None:
        assert self._scheduler is not None
        self._scheduler.send_signal(signal.SIGSTOP)

    def ask_to_cancel(self, run: str) -> None:
        """The request is durable, and nobody carries it out."""
        with suppress(subprocess.TimeoutExpired):
            subprocess.run([sys.executable, "-m", "ork", "cancel", run], cwd=self.root, env=self.env, timeout=3)

    def kill_scheduler(self) -> None:
        assert self._scheduler is not None
        self._scheduler.kill()
        self._scheduler.wait()

    def kill_everything(self) -> None:
        while pids := list(marked_processes()):
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.05)

    def ledger(self) -> str:
        path = self.root / "ledger.txt"
        return path.read_text() if path.exists() else ""


def marked_processes() -> Iterator[int]:
    """Everything that the scheduler started, by the variable it passed on; never this process."""
    for path in Path("/proc").glob("[0-9]*/environ"):
        pid = int(path.parent.name)
        try:
            if pid != os.getpid() and MARK.encode() in path.read_bytes().split(b"\0") and is_alive(path.parent):
                yield pid
        except OSError:
            continue


def is_alive(process: Path) -> bool:
    return (process / "stat").read_text().rpartition(")")[2].split()[0] != "Z"


def wait(what: str, until: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not until():
        if time.monotonic() > deadline:
            raise SystemExit(f"this never came true: {what}")
        time.sleep(0.05)


def bring_into_all_states(here: Installation) -> dict[str, str]:
    """Which run is in which state when everything has been killed."""
    flows = sorted(path.name for path in here.root.glob("*.yaml") if path.name != "ork.yaml")
    here.ork("deploy", *flows)
    here.start_scheduler()
    runs = finish_some(here) | begin_some(here)
    here.freeze_scheduler()
    here.ask_to_cancel(runs["running, to be cancelled"])
    here.kill_scheduler()
    (here.root / "release-late").touch()
    wait("the late task ended", lambda: says_success(here, runs["result nobody has seen"]))
    here.kill_everything()
    runs["pending with a key"] = here.trigger("sample", "--key", "nightly", "-p", "second=5")
    here.ork("retry", "--detach", runs["failed, to be retried"])
    return runs


def finish_some(here: Installation) -> dict[str, str]:
    runs = {
        "success": here.trigger("sample"),
        "failed": here.trigger("failing"),
        "failed, to be retried": here.trigger("failing"),
        "cached before": here.trigger("cached"),
    }
    cancelled = here.trigger("holding")
    wait("it holds", lambda: here.ledger().count(cancelled) == 4)
    here.ork("cancel", cancelled)
    for run in (*runs.values(), cancelled):
        wait(f"{run} ended", lambda: here.shown(run)["status"] in ("success", "failed", "cancelled"))  # noqa: B023
    here.ork("backfill", "sample", "--from", "2026-01-01", "--to", "2026-01-02")
    return runs | {"cancelled": cancelled, "cached": here.trigger("cached")}


def begin_some(here: Installation) -> dict[str, str]:
    runs = {
        "running in every isolation": here.trigger("holding"),
        "running, to be cancelled": here.trigger("holding"),
        "paused with something running": here.trigger("holding"),
        "result nobody has seen": here.trigger("late"),
        "fan-out half done": here.trigger("fan"),
        "waiting for a retry": here.trigger("retrying"),
        "waiting for a person": here.trigger("asking"),
        "waiting for a job": here.trigger("deferring"),
        "waiting for a sub-workflow": here.trigger("parent"),
        "reading a large output": here.trigger("large"),
        "being cancelled": here.trigger("stubborn"),
        "running in a pool": here.trigger("single"),
        "branches taken": here.trigger("branching"),
    }
    runs["pending behind another"] = here.trigger("single")
    for state, starts in (("running in every isolation", 4), ("running, to be cancelled", 4),
                          ("paused with something running", 4), ("result nobody has seen", 1), ("waiting for a retry", 1),
                          ("waiting for a person", 1), ("waiting for a job", 1), ("reading a large output", 2),
                          ("being cancelled", 1), ("running in a pool", 1), ("branches taken", 3)):  # fmt: skip
        wait(state, lambda: here.ledger().count(runs[state]) == starts)  # noqa: B023
    wait("fan-out", lambda: sum(runs["fan-out half done"] in line for line in here.ledger().splitlines()) == 6)
    wait("the child holds", lambda: any(child in here.ledger() for child in children(here)))
    runs["paused"] = paused_at_rest(here)
    here.ork("pause", runs["paused with something running"])
    wait("paused", lambda: here.shown(runs["paused with something running"])["status"] == "paused")
    wait("deferred", lambda: not_running(here.shown(runs["waiting for a job"])))
    here.ork("cancel", runs["being cancelled"])
    time.sleep(1)  # the scheduler has asked it to stop and waits for that
    return runs


def children(here: Installation) -> list[str]:
    return [run["id"] for run in json.loads(here.ork("runs", "--json"))["runs"] if run["workflow"] == "sheltered"]


def paused_at_rest(here: Installation) -> str:
    """Paused while its only task waits to be tried again."""
    run = here.trigger("retrying")
    wait("it failed once", lambda: run in here.ledger())
    here.ork("pause", run)
    wait("paused", lambda: here.shown(run)["status"] == "paused")
    return run


def not_running(run: dict) -> bool:
    return any(task["name"] == "submit" and task["status"] == "running" for task in run["tasks"])


def says_success(here: Installation, run: str) -> bool:
    """The worker has written its last word: in a journal or in a file."""
    found = [path for path in (here.root / ".ork/objects").rglob("*") if path.is_file() and run in str(path)]
    return any(b'"success"' in path.read_bytes() for path in found)


def keep(here: Installation, kind: str, dump: str, runs: dict[str, str], into: Path) -> None:
    """Paths and this machine's names become placeholders, which `tests.golden.opened` fills in again."""
    import ork.executors.processes as machine

    machine_names = (machine.hostname(), machine.boot_id(), str(machine.pid_namespace()))
    for separator in ":/":  # as in the names of attempts, and in those of schedulers
        dump = dump.replace(separator.join(machine_names), separator.join(("@HOST@", "@BOOT@", "@NAMESPACE@")))
    dump = dump.replace(str(here.root), "@ROOT@").replace(machine.boot_id(), "@BOOT@")
    (into / f"{kind}.sql").write_text(dump)
    (into / f"{kind}.json").write_text(json.dumps(runs, indent=1) + "\n")
    (into / f"{kind}.ledger.txt").write_text(here.ledger())
    shutil.rmtree(into / f"{kind}.objects", ignore_errors=True)
    shutil.copytree(here.root / ".ork/objects", into / f"{kind}.objects")


@contextmanager
def installed(release: Path, store: str | None) -> Iterator[Installation]:
    root = Path(tempfile.mkdtemp(prefix="ork-golden-"))
    shutil.copytree(release / "project", root, dirs_exist_ok=True)
    here = Installation(root, store)
    try:
        yield here
    finally:
        here.kill_everything()
        shutil.rmtree(root)


def make_sqlite(release: Path) -> None:
    with installed(release, None) as here:
        runs = bring_into_all_states(here)
        raw = sqlite3.connect(here.root / ".ork/ork.db")
        head = "".join(
            f"PRAGMA {name} = {raw.execute(f'PRAGMA {name}').fetchone()[0]};\n"
            for name in ("user_version", "application_id")
        )
        keep(here, "sqlite", head + "\n".join(raw.iterdump()) + "\n", runs, release)
        raw.close()


def make_postgres(release: Path) -> None:
    from tests.postgres import fresh_database, server_or_skip

    server = server_or_skip()
    with fresh_database() as url, installed(release, url) as here:
        runs = bring_into_all_states(here)
        words = ["--inserts", "--no-owner", "--no-privileges", "--no-comments", "-h", str(server.folder), "-U", "ork"]
        dumped = subprocess.check_output(
            [server.bin / "pg_dump", *words, "-p", str(server.port), url.rsplit("/", 1)[1]], text=True
        )
        # What a newer pg_dump writes for a newer psql alone.
        kept = [
            line for line in dumped.splitlines() if not re.match(r"\\(un)?restrict |--|SET transaction_timeout", line)
        ]
        keep(here, "postgres", re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip() + "\n", runs, release)


if __name__ == "__main__":
    version = tomllib.loads((FOLDER.parent.parent / "pyproject.toml").read_text())["project"]["version"]
    {"sqlite": make_sqlite, "postgres": make_postgres}[sys.argv[1]](FOLDER / version)

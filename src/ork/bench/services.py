"""Services that run during a measurement, and how their resource usage is observed."""

from __future__ import annotations

import os
import select
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ork.bench.processes import ORK, MeasuredProcessError, environment

READY_SECONDS = 30
SETTLE_SECONDS = 6.0  # after that, the work that a service does once after its start is over


@contextmanager
def scheduler(folder: Path, store: str | None = None) -> Iterator[int]:
    """The pid of an `ork scheduler` that has reported READY; it is stopped at the end."""
    with service(("scheduler",), folder, store) as pid:
        yield pid


@contextmanager
def service(command: tuple[str, ...], folder: Path, store: str | None) -> Iterator[int]:
    """The pid of a long-running `ork` command that has printed something; it is stopped at the end."""
    (folder / "ork.yaml").touch()  # services need a project
    child = subprocess.Popen(
        (*ORK, *command), cwd=folder, env=environment(store), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert child.stdout is not None
    try:
        said = select.select([child.stdout], [], [], READY_SECONDS)[0] and child.stdout.readline().decode()
        if not said:
            raise MeasuredProcessError(f"`ork {command[0]}` did not get ready")
        yield child.pid
        if child.poll() is not None:
            raise MeasuredProcessError(f"`ork {command[0]}` did not stay: {said.strip()}")
    finally:
        child.terminate()
        child.communicate()


def cpu_seconds(pid: int) -> float:
    """CPU time of its threads in nanoseconds; clock ticks would be too coarse."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9


def rss_mb(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

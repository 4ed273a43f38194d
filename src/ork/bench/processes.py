"""Processes that are measured: how long they took, what they used, and an environment that slows none of them down."""

from __future__ import annotations

import compileall
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryFile
from threading import Timer
from time import perf_counter
from typing import IO

from ork.model.record import Record

PACKAGE = Path(__file__).resolve().parent.parent
PATIENCE_SECONDS = 1800
ORK = (sys.executable, "-m", "ork")


class Ended(Record):
    """A process that ended well. CPU time and memory include the children it waited for."""

    seconds: float
    cpu_seconds: float
    rss_mb: float
    stdout: str


class MeasuredProcessError(Exception):
    """What was to be measured failed, so there is nothing to report."""


def run(argv: tuple[str, ...], folder: Path, store: str | None = None) -> Ended:
    """Runs to the end, on the store of that URL; MeasuredProcessError with what it said if it fails."""
    with TemporaryFile() as stdout, TemporaryFile() as stderr:
        begin = perf_counter()
        child = subprocess.Popen(argv, cwd=folder, env=environment(store), stdout=stdout, stderr=stderr)
        alarm = Timer(PATIENCE_SECONDS, child.kill)
        try:
            alarm.start()
            _, status, usage = os.wait4(child.pid, 0)
        except BaseException:  # whoever presses Ctrl-C wants all of it to end
            child.kill()
            child.wait()
            raise
        finally:
            alarm.cancel()
        seconds = perf_counter() - begin
        child.returncode = os.waitstatus_to_exitcode(status)
        said, complaint = contents(stdout), contents(stderr)
    if child.returncode:
        raise MeasuredProcessError(f"{' '.join(argv)} ended with {child.returncode}: {complaint.strip()[-2000:]}")
    return Ended(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, said)


def contents(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


def environment(store: str | None = None) -> dict[str, str]:
    """The caller's, without settings of Ork (but the store) and without what keeps Python from using bytecode."""
    unwanted = {"PYTHONDONTWRITEBYTECODE"}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ORK_") and name not in unwanted}
    return kept if store is None else kept | {"ORK_STORE": store}


def compile_bytecode() -> None:
    """An editable install has none until somebody imports it: the first cold start would pay for that."""
    compileall.compile_dir(str(PACKAGE), quiet=2)


def lean_floor(name: str, count: int, folder: Path) -> float:
    """Seconds that the floor of that name needed, in a folder of its own below `folder`."""
    return lean_floors(name, count, folder)[0]


def lean_floors(name: str, count: int, folder: Path) -> list[float]:
    """All that `lean.py` measured."""
    work = folder / f"floor-{name}-{len(os.listdir(folder))}"
    work.mkdir()
    script = str(PACKAGE / "bench" / "floors" / "lean.py")
    return [
        float(word)
        for word in run((sys.executable, "-I", "-S", script, name, str(count), str(work)), work).stdout.split()
    ]

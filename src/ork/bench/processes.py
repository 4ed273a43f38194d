"""Runs measured processes: their duration, resource usage and environment."""

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
TIMEOUT_SECONDS = 1800
ORK = (sys.executable, "-m", "ork")


class Ended(Record):
    """A successful process. CPU time and memory include the children that it waited for."""

    seconds: float
    cpu_seconds: float
    rss_mb: float
    stdout: str


class MeasuredProcessError(Exception):
    """The measured process failed, so there is no result."""


def run(argv: tuple[str, ...], folder: Path, store: str | None = None) -> Ended:
    """Run the process on the store of that URL. MeasuredProcessError with its output if it fails."""
    with TemporaryFile() as stdout, TemporaryFile() as stderr:
        begin = perf_counter()
        child = subprocess.Popen(argv, cwd=folder, env=environment(store), stdout=stdout, stderr=stderr)
        alarm = Timer(TIMEOUT_SECONDS, child.kill)
        try:
            alarm.start()
            _, status, usage = os.wait4(child.pid, 0)
        except BaseException:  # also on Ctrl-C
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
    """The caller's environment without settings of Ork (except the store) and without variables that disable bytecode."""
    unwanted = {"PYTHONDONTWRITEBYTECODE"}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ORK_") and name not in unwanted}
    return kept if store is None else kept | {"ORK_STORE": store}


def compile_bytecode() -> None:
    """Compile bytecode, which an editable install lacks: otherwise the first cold start would include that."""
    compileall.compile_dir(str(PACKAGE), quiet=2)


def lean_floor(name: str, count: int, folder: Path, file: Path | None = None) -> float:
    """Seconds that the floor of that name needed, in a folder of its own below `folder`. `file`: the task to call."""
    return lean_floors(name, count, folder, file)[0]


def lean_floors(name: str, count: int, folder: Path, file: Path | None = None) -> list[float]:
    """All that `lean.py` measured."""
    work = folder / f"floor-{name}-{len(os.listdir(folder))}"
    work.mkdir()
    options, files = (("-I", "-S"), ()) if file is None else (("-I",), (str(file),))
    script = str(PACKAGE / "bench" / "floors" / "lean.py")
    return [
        float(word)
        for word in run((sys.executable, *options, script, name, str(count), str(work), *files), work).stdout.split()
    ]

"""Counts the walk of `ork run` on examples/etl: how much of the package a reader meets who follows one run.

Prints, for the command's own process and for the workers' processes: the files of the package in which a function runs, and
the distinct pairs (caller, callee) of functions in different files. `python -m perf.walk --list` prints both in full.

The run uses a copy of the package whose `ork/__init__.py` installs a profile hook: workers start without site packages and
without the caller's environment, so there is no other place that every process passes.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent

# Written to one file per process as it happens: forked processes end without any exit handler.
HOOK = """
def _watch(out, package):
    import os
    import sys
    import threading

    seen = set()

    def name_of(frame):
        code = None if frame is None else frame.f_code
        if code is None or not code.co_flags & 1 or not code.co_filename.startswith(package):
            return None  # no function (modules and class bodies are not optimized), or not one of the package
        return code.co_filename[len(package):] + " " + code.co_qualname.replace(" ", "")

    def note(frame, event, argument):
        if event == "call" and (callee := name_of(frame)) is not None:
            line = callee + " " + (name_of(frame.f_back) or "- -")
            if line not in seen:
                seen.add(line)
                file = os.open(out + "/" + str(os.getpid()), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
                os.write(file, line.encode() + b"\\n")
                os.close(file)

    os.register_at_fork(after_in_child=seen.clear)
    threading.setprofile(note)
    sys.setprofile(note)


_watch({out!r}, {package!r})
"""


class Walk(NamedTuple):
    """`pairs` holds (file, function) of caller and callee, in different files."""

    files: set[str]
    pairs: set[tuple[str, ...]]


def walk() -> tuple[Walk, Walk]:
    """Of the command's own process, and of all other processes together."""
    with TemporaryDirectory(prefix="ork-walk-") as folder:
        place = Path(folder)
        package, out = place / "lib" / "ork", place / "out"
        shutil.copytree(ROOT / "src" / "ork", package, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copytree(ROOT / "examples" / "etl", place / "etl", ignore=shutil.ignore_patterns(".ork", "out"))
        out.mkdir()
        with open(package / "__init__.py", "a") as file:
            file.write(HOOK.format(out=str(out), package=f"{package}/"))
        command = [sys.executable, "-m", "ork", "run", "workflow.yaml"]
        environment = {**os.environ, "PYTHONPATH": str(package.parent)}
        ran = subprocess.Popen(
            command, cwd=place / "etl", env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        said, _ = ran.communicate(timeout=300)
        if ran.returncode:
            raise RuntimeError(f"ork run ended with {ran.returncode}: {said}")
        lines = {int(file.name): file.read_text().splitlines() for file in out.iterdir()}
    own = lines.pop(ran.pid)
    return read(own), read([line for others in lines.values() for line in others])


def read(lines: list[str]) -> Walk:
    files, pairs = set(), set()
    for line in lines:
        callee, name, caller, caller_name = line.split(" ")
        files.add(callee)
        if caller != "-":
            files.add(caller)
            if caller != callee:
                pairs.add((caller, caller_name, callee, name))
    return Walk(files, pairs)


def main() -> int:
    parser = argparse.ArgumentParser(description="Count the files and calls of `ork run` on examples/etl.")
    parser.add_argument("--list", action="store_true", help="print every file and pair")
    is_full = parser.parse_args().list
    for name, found in zip(("ork run", "its workers"), walk(), strict=True):
        print(f"{name}: {len(found.files)} files, {len(found.pairs)} pairs of functions across files")
        if is_full:
            print(*(f"  {file}" for file in sorted(found.files)), sep="\n")
            print(*(f"  {a} {b} -> {c} {d}" for a, b, c, d in sorted(found.pairs)), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""How many pages of memory a forked process has to be given, or copies: that, more than anything else, is what it costs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

# Both print what a process and its children took, each the way it is done: as many forks as are asked for.
BARE = """
import os, sys

def taken():
    with open("/proc/self/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return int(fields[7]), int(fields[8])

def fork(count):
    for _ in range(count):
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)

fork(10)
before = taken()
fork(int(sys.argv[1]))
print(*(after - then for then, after in zip(before, taken())))
"""
PLAIN = """
import os, sys
from ork.objects.local import LocalObjects
from ork.worker import warm
from ork.worker.forker import Forker
from ork.worker.mark import Mark
from ork.worker.rehearsal import SPEC

count, folder = int(sys.argv[1]), sys.argv[2]
mark, out = Mark(), os.dup(1)
warm._load(mark)
forker = Forker(mark, folder, None, folder)
objects = LocalObjects(folder, "normal")

def taken():
    with open(f"/proc/{forker.pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return int(fields[7]), int(fields[8])

def perform(count):
    for number in range(count):
        forker.make_next("tasks.py")
        spec = {**SPEC, "attempt": f"run/t{number}/0/1", "task": f"t{number}", "root": folder, "file": "tasks.py"}
        assert forker.give(objects, "runs", spec)
        assert forker.read_end() == 0
        assert b'"inline":"1"' in os.read(forker.source, 4096)

perform(10)
before = taken()
perform(count)
os.write(out, b"%d %d" % tuple(after - then for then, after in zip(before, taken())))
forker.dismiss()
"""
_COUNT = 40


def pages_of_bare_forks() -> tuple[float, float]:
    """Of the process that forks and of the one that is forked, for each."""
    return _counted([sys.executable, "-I", "-S", "-c", BARE, str(_COUNT)])


def pages_of_plain_tasks(folder: Path) -> tuple[float, float]:
    """Of a forker and of a task's process, for each."""
    (folder / "tasks.py").write_text("def main():\n    return 1\n")
    return _counted([sys.executable, "-S", "-c", PLAIN, str(_COUNT), str(folder)])


def _counted(command: list[str]) -> tuple[float, float]:
    environ = {**os.environ, "ORK_ATTEMPT_ID": "-" * 512, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True, timeout=60)
    forking, forked = (int(word) / _COUNT for word in done.stdout.split())
    return forking, forked

"""The mark of an attempt, as others see it."""

from __future__ import annotations

import subprocess
import sys

MARKED = """
import os, sys
from ork.worker.system.processes import VARIABLE, AttemptTag

def seen():
    with open("/proc/self/environ", "rb") as file:
        variables = dict(pair.split(b"=", 1) for pair in file.read().split(b"\\0") if b"=" in pair)
    return variables[VARIABLE.encode()]

mark = AttemptTag()
mark.write(b"a/long/0/17")
mark.write(b"a/b/0/1")
if os.fork() == 0:
    mark.write(b"a/c/0/1")
    os._exit(seen() != b"a/c/0/1")
assert os.wait()[1] == 0
assert seen() == b"a/b/0/1", seen()
mark.write(b"")
assert seen() == b"", seen()
try:
    mark.write(b"x" * 33)
except ValueError:
    sys.exit()
sys.exit("a mark longer than its place")
"""


def test_a_mark_is_seen_by_others_and_each_fork_has_its_own() -> None:
    environment = {"ORK_ATTEMPT_ID": "-" * 32, "AFTER": "it"}
    subprocess.run([sys.executable, "-c", MARKED], env=environment, check=True)

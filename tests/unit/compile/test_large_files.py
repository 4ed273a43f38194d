"""A file that a program wrote is read like any other: in linear time, in bounded memory."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ork.compile.load import load_workflow

TASKS = 100_000


def chain(tasks: int) -> bytes:
    lines = [f"  task_{n}:\n    command: echo hello\n    depends_on: [task_{n - 1}]\n" for n in range(1, tasks)]
    return ("name: large\ntasks:\n  task_0: {command: echo}\n" + "".join(lines)).encode()


# VmHWM and not ru_maxrss: the latter also counts what the process that forked it was large with.
MEASURE = """
import re, sys
from ork.compile.load import load_workflow
loaded = load_workflow(sys.stdin.buffer.read(), "large.yaml", read=lambda path: None)
peak = int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read()).group(1))
print(len(loaded.require().tasks), peak // 1024)
"""


@pytest.mark.slow
def test_a_hundred_thousand_tasks_fit_into_300_mib() -> None:
    done = subprocess.run([sys.executable, "-c", MEASURE], input=chain(TASKS), capture_output=True, check=True)
    tasks, mebibytes = map(int, done.stdout.split())
    assert tasks == TASKS
    assert mebibytes < 300


@pytest.mark.slow
def test_a_long_chain_is_read_without_recursion() -> None:
    assert len(load_workflow(chain(5000), "w.yaml", read=lambda path: None).require().tasks) == 5000


@pytest.mark.slow
def test_a_suggestion_among_many_names_is_still_found() -> None:
    text = chain(5000) + b"  last: {command: x, depends_on: [taks_4999]}\n"
    (problem,) = load_workflow(text, "w.yaml", read=lambda path: None).problems
    assert problem.hint == "did you mean `task_4999`?"

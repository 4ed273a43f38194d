"""Processes that believe in another time (libfaketime), and what they leave behind."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SHARED_MEMORY = Path("/dev/shm")


def forget_the_dead() -> None:
    """Each leaves shared memory under its pid if it is killed; whoever gets that pid later cannot begin."""
    for left in SHARED_MEMORY.glob("*faketime_*"):
        pid = left.name.rpartition("_")[2]
        if pid.isdecimal() and not Path(f"/proc/{pid}").exists():
            with suppress(OSError):
                os.unlink(left)


@contextmanager
def fooled(library: str, moment: str) -> Iterator[dict[str, str]]:
    """The environment of processes that begin at `moment`, as the library reads it; each may be given another FAKETIME.

    All share the memory of one that lives as long as they may. Left alone, each that is not a child of another makes
    its own and leaves it behind: its children, which may outlive it, then depend on what nobody owns, and whoever
    tidies up at a bad moment kills them (a signal, in the middle of a task).
    """
    forget_the_dead()
    with subprocess.Popen(
        ["cat"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "LD_PRELOAD": library, "FAKETIME": moment},
    ) as owner:
        assert owner.stdin is not None
        assert owner.stdout is not None
        owner.stdin.write(b"ready\n")
        owner.stdin.flush()
        assert owner.stdout.readline() == b"ready\n"
        shared = f"/faketime_sem_{owner.pid} /faketime_shm_{owner.pid}"
        yield {"LD_PRELOAD": library, "FAKETIME": moment, "FAKETIME_SHARED": shared}
        owner.stdin.close()


def library() -> str:
    """The path of libfaketime, which is installed if need be; without it the test is skipped."""

    def find() -> str | None:
        return next((str(path) for path in Path("/usr/lib").glob("*/faketime/libfaketime.so.1")), None)

    if find() is None:
        subprocess.run([ROOT / "scripts/components.sh", "faketime"], capture_output=True)
    found = find()
    if found is None:
        pytest.skip("faketime is not installed and cannot be (scripts/components.sh faketime)")
    return found

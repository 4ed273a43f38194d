"""Runs inside every attempt, and writes to a ledger when work really starts and ends.

A lock is held for each task while an attempt works. The system releases it when the last process of the attempt is gone, so a
second attempt that finds it taken overlaps with the first. Nothing here depends on what Ork believes: only the attempt's name
comes from it.

    recorded.py stand-in FOLDER SECONDS [FAILURES]    instead of the task: sleep, and fail in the first FAILURES attempts
    recorded.py run FOLDER PROGRAM [ARGUMENT]...      the program itself
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any


class FailedOnPurposeError(Exception):
    """So that retries are tried as well."""


@contextlib.contextmanager
def recorded(folder: str) -> Iterator[None]:
    """Write `start`, then `end` or `failed`; and `overlap` if another attempt of the task is still at work."""
    attempt = os.environ["ORK_ATTEMPT_ID"]
    ledger = os.open(os.path.join(folder, "ledger"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    lock = os.open(os.path.join(folder, lock_name(attempt)), os.O_RDWR | os.O_CREAT, 0o666)
    os.set_inheritable(lock, True)  # the processes of the attempt hold it, too

    def write(what: str) -> None:
        os.write(ledger, f"{what} {attempt} {os.getpid()} {time.time():.3f}\n".encode())

    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            write("overlap")
        write("start")
        try:
            yield
        except BaseException:
            write("failed")
            raise
        write("end")
    finally:
        os.close(lock)
        os.close(ledger)


def lock_name(attempt: str) -> str:
    """The name of the lock of a task or instance: that of the attempt without its number."""
    return attempt.rpartition("/")[0].replace("/", "!") + ".lock"


def main() -> None:
    """The stand-in of a function."""
    stand_in(os.environ["CHAOS_LEDGER"], os.environ["CHAOS_SECONDS"], os.environ.get("CHAOS_FAILURES", "0"))


def stand_in(folder: str, seconds: str, failures: str = "0") -> None:
    with recorded(folder):
        time.sleep(float(seconds))
        if int(os.environ["ORK_ATTEMPT"]) <= int(failures):
            raise FailedOnPurposeError("ork chaos lets this attempt fail, to try the retry")


def run(folder: str, argv: list[str]) -> None:
    """Run the program with the lock, and end as it ends."""
    is_script = "/" in argv[0] and not os.access(argv[0], os.X_OK)
    starter = [sys.executable if argv[0].endswith(".py") else "/bin/sh"] if is_script else []
    with recorded(folder):
        child = subprocess.Popen([*starter, *argv], close_fds=False)
        code = child.wait()
        if code:
            sys.exit(code if code > 0 else 128 - code)


def __getattr__(name: str) -> Any:
    """`task_N` is the Nth function of functions.json, recorded. Its file is loaded as Ork's worker loads it."""
    if not name.startswith("task_"):
        raise AttributeError(name)
    from ork.worker.call.loading import load_function

    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "functions.json"), encoding="utf-8") as file:
        known = json.load(file)
    root, file, module, function, paths = known["functions"][int(name.removeprefix("task_"))]
    inner = load_function(root, file, module, function, paths)

    @functools.wraps(inner)
    def outer(*args: Any, **named: Any) -> Any:
        with recorded(known["ledger"]):
            result = inner(*args, **named)
            if hasattr(result, "__await__"):
                import asyncio

                async def wait() -> Any:
                    return await result

                return asyncio.run(wait())
            return result

    return outer


if __name__ == "__main__":
    if sys.argv[1] == "run":
        run(sys.argv[2], sys.argv[3:])
    else:
        stand_in(*sys.argv[2:])

"""The tag by which the processes of an attempt are found: the variable ORK_ATTEMPT_ID in the environment that /proc shows.

/proc shows the environment that a program was started with. The fork server is started with room in that variable, so that each
process forked from it can write its own tag in place; what it forks has the same tag.
"""

from __future__ import annotations

import os

VARIABLE = "ORK_ATTEMPT_ID"
SEVERAL = b"*"  # a worker with several attempts; its shared process has the tag of the current one
_ENV_START = 47  # in /proc/self/stat, counted from the state on


class AttemptTag:
    """Where the tag stands in this process's memory. OSError or ValueError where there is no such place."""

    def __init__(self) -> None:
        name = f"{VARIABLE}=".encode()
        with open("/proc/self/environ", "rb") as file:
            environment = b"\0" + file.read()
        at = environment.index(b"\0" + name)  # as far into the environment, as the NUL in front is not part of it
        with open("/proc/self/stat", "rb") as file:
            start = int(file.read().rpartition(b")")[2].split()[_ENV_START])
        self._address = start + at + len(name)
        self._room = environment.index(b"\0", at + 1) - at - 1 - len(name)
        # Here and now, rather than in the first child: a system may forbid it.
        self.write(b"-" * self._room)

    def write(self, attempt: bytes) -> None:
        if len(attempt) > self._room:
            raise ValueError(f"there is no room for {attempt!r}")
        memory = os.open("/proc/self/mem", os.O_RDWR | os.O_CLOEXEC)
        try:
            os.pwrite(memory, attempt.ljust(self._room, b"\0"), self._address)
        finally:
            os.close(memory)

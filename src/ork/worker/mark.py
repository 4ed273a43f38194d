"""The mark by which an attempt's processes are found, in a process that was forked rather than started for it.

Others see a process's environment in /proc as it was when its program began. Room was left there for the mark, so it
can be written over in place, and whatever is forked afterwards carries it too.
"""

from __future__ import annotations

import os

MARK = "ORK_ATTEMPT_ID"
SEVERAL = "*"  # it has more than one attempt at a time: a process below it bears the mark of the one that it is at
_ENV_START = 47  # in /proc/self/stat, counted from the state on


class Mark:
    """Where the mark stands in this process's memory. OSError or ValueError where there is no such place."""

    def __init__(self) -> None:
        name = f"{MARK}=".encode()
        with open("/proc/self/environ", "rb") as file:
            environment = b"\0" + file.read()
        at = environment.index(b"\0" + name)  # as far into the environment, as the NUL in front is not part of it
        with open("/proc/self/stat", "rb") as file:
            start = int(file.read().rpartition(b")")[2].split()[_ENV_START])
        self._address = start + at + len(name)
        self._room = environment.index(b"\0", at + 1) - at - 1 - len(name)
        self._kept, self._keeper = -1, 0
        # Here and now, rather than in the first child: a system may forbid it.
        self.write("-" * self._room)

    def keep_open(self) -> int:
        """For a process that writes often. The descriptor leads to its memory also from those that are forked from it:
        they must close it."""
        self._kept, self._keeper = _own_memory(), os.getpid()
        return self._kept

    def write(self, attempt: str) -> None:
        data = attempt.encode()
        if len(data) > self._room:
            raise ValueError(f"there is no room for {attempt}")
        data = data.ljust(self._room, b"\0")
        if self._keeper == os.getpid():
            os.pwrite(self._kept, data, self._address)
            return
        memory = _own_memory()
        try:
            os.pwrite(memory, data, self._address)
        finally:
            os.close(memory)


def _own_memory() -> int:
    return os.open("/proc/self/mem", os.O_RDWR | os.O_CLOEXEC)

"""The mark by which an attempt's processes are found, in a process that was forked rather than started for it.

Others see a process's environment in /proc as it was when its program began. Room was left there for the mark, so it
can be written over in place, and whatever is forked afterwards carries it too.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MARK = "ORK_ATTEMPT_ID"
SEVERAL = b"*"  # it has more than one attempt at a time: a process below it bears the mark of the one that it is at
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
        self._memory: Any = None  # as something that can be written to
        # Here and now, rather than in the first child: a system may forbid it.
        self.write(b"-" * self._room)

    def keep_at_hand(self) -> None:
        """For a process that writes often, and all that are forked from it."""
        if self._memory is None:
            self._memory = _memory(self._address, self._room)

    @property
    def room(self) -> int:
        return self._room

    @property
    def memory(self) -> Any:
        """A buffer, to be written in its whole length; None where there is no such thing at hand."""
        return self._memory

    def padded(self, attempt: bytes) -> bytes:
        """In its whole length."""
        if len(attempt) > self._room:
            raise ValueError(f"there is no room for {attempt!r}")
        return attempt.ljust(self._room, b"\0")

    def write(self, attempt: bytes) -> None:
        data = self.padded(attempt)
        if self._memory is not None:
            self._memory.raw = data
            return
        memory = os.open("/proc/self/mem", os.O_RDWR | os.O_CLOEXEC)
        try:
            os.pwrite(memory, data, self._address)
        finally:
            os.close(memory)


def _memory(address: int, size: int) -> Any:
    """None where it can only be reached as a file."""
    try:
        from _ctypes import Array, _SimpleCData  # `ctypes` itself takes several times as long to import

        character = type("character", (_SimpleCData,), {"_type_": "c"})
        characters: Any = type("characters", (Array,), {"_type_": character, "_length_": size})
        return characters.from_address(address)
    except (ImportError, AttributeError):
        return None

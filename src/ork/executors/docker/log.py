"""A container's output into the attempt's log, byte for byte, also what was written while nobody listened."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator


async def copy_log(pieces: AsyncIterator[tuple[int, bytes]], path: str) -> None:
    """Everything the engine tells, from the first byte on, is in the log.

    Each byte has its place: what is there already is passed over, and two who copy at the same time write the same.
    OSError where the log cannot be written (a full disk): the engine still has it all, so it can be begun again.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        there, place = os.fstat(descriptor).st_size, 0
        async for _, data in pieces:
            new = memoryview(data)[max(0, there - place) :]
            place += len(data)
            while new:
                new = new[os.pwrite(descriptor, new, place - len(new)) :]
    finally:
        os.close(descriptor)

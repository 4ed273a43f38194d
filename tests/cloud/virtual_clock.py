"""A clock that is ahead of the real one by an offset. It runs at the real speed, and is moved when a test says so."""

from __future__ import annotations

import hashlib
import mmap
import os
import shutil
import struct
import subprocess
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.buckets import CACHE

SOURCE = Path(__file__).with_suffix(".c")
OFFSET = struct.Struct("q")


class VirtualClock:
    """Processes share it by a file that `virtual_clock.c` maps, so that all of them see a move at once."""

    def __init__(self, begin: datetime, file: Path) -> None:
        self._lock = threading.RLock()
        self._file = file
        file.write_bytes(bytes(OFFSET.size))
        with file.open("r+b") as opened:
            self._offset = mmap.mmap(opened.fileno(), OFFSET.size)
        self.move_to(begin)

    def now(self) -> datetime:
        with self._lock:
            (offset,) = OFFSET.unpack_from(self._offset)
            return datetime.fromtimestamp((time.time_ns() + offset) / 1e9, UTC)

    def move_to(self, when: datetime) -> None:
        with self._lock:
            OFFSET.pack_into(self._offset, 0, round(when.timestamp() * 1e9) - time.time_ns())

    @property
    def environment(self) -> dict[str, str]:
        """For processes that share the clock."""
        return {"LD_PRELOAD": str(library()), "VIRTUAL_CLOCK": str(self._file), "TZ": "UTC"}


def library() -> Path:
    """The compiled `virtual_clock.c`, kept outside of the tree. Without a compiler the test is skipped."""
    source = SOURCE.read_bytes()
    made = CACHE / f"virtual-clock-{hashlib.sha256(source).hexdigest()[:12]}.so"
    if not made.exists():
        compiler = shutil.which("cc")
        if compiler is None:
            pytest.skip("there is no C compiler for the virtual clock (cc)")
        CACHE.mkdir(parents=True, exist_ok=True)
        part = made.with_suffix(f".{os.getpid()}")
        subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", part, SOURCE], check=True)
        part.replace(made)
    return made

"""A clock that is ahead of the real one by an offset. It runs at the real speed, and is moved when a test says so."""

from __future__ import annotations

import os
import threading
import time
from datetime import UTC, datetime
from pathlib import Path


class VirtualClock:
    """Processes share it by a file that libfaketime reads, so that all of them see a move at once."""

    def __init__(self, begin: datetime, file: Path) -> None:
        self._lock = threading.RLock()
        self._file = file
        self._offset = 0.0
        self.move_to(begin)

    def now(self) -> datetime:
        with self._lock:
            return datetime.fromtimestamp(time.time() + self._offset, UTC)

    def move_to(self, when: datetime) -> None:
        with self._lock:
            self._offset = when.timestamp() - time.time()
            new = self._file.with_suffix(".new")
            new.write_text(f"{self._offset:+.6f}s\n")
            os.replace(new, self._file)

    @property
    def environment(self) -> dict[str, str]:
        """For processes that share the clock, besides LD_PRELOAD."""
        return {
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "TZ": "UTC",
        }

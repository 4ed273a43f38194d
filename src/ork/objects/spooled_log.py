"""A log for a store without files: a local file that is uploaded in chunks."""

from __future__ import annotations

import os
import time

from ork.errors import ObjectsError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ork.objects.attempt_documents import AttemptDocuments


UPLOAD_SECONDS = 10.0
UPLOAD_BYTES = 256 << 10
LARGEST_CHUNK = 1 << 20  # small, so that a worker with a long log writes heartbeats in between


class SpooledLog:
    """Goes on behind what the store has. Whoever has it open calls `flush` when it is `due`, so that others see it grow."""

    def __init__(self, documents: AttemptDocuments, attempt: str) -> None:
        self._documents = documents
        self._attempt = attempt
        self._descriptor = -1
        self._begin = -1  # where in the log the local file begins; -1: not known yet
        self._uploaded = 0
        self._flush_at = 0.0  # not earlier, unless there is much

    def fileno(self) -> int:
        if self._descriptor < 0:
            from tempfile import mkstemp

            self._descriptor, path = mkstemp(prefix="ork-log-")
            os.unlink(path)
        return self._descriptor

    def flush(self) -> bool:
        if self._descriptor < 0 or os.fstat(self._descriptor).st_size == self._uploaded:
            return False
        if self._begin < 0:
            self._begin = self._documents.log_size(self._attempt) or 0
        self._flush_at = time.monotonic() + UPLOAD_SECONDS
        data = os.pread(self._descriptor, LARGEST_CHUNK, self._uploaded)
        self._documents.write_log(self._attempt, self._begin + self._uploaded, data)
        self._uploaded += len(data)
        is_behind = os.fstat(self._descriptor).st_size > self._uploaded
        if is_behind:
            self._flush_at = 0.0
        return is_behind

    def due(self, now: float) -> float | None:
        """The first bytes at once, the others every 10 s, and earlier where there is much."""
        waiting = 0 if self._descriptor < 0 else os.fstat(self._descriptor).st_size - self._uploaded
        if not waiting:
            return None
        return now if waiting >= UPLOAD_BYTES and self._flush_at - now < UPLOAD_SECONDS - 1 else self._flush_at

    def close(self) -> None:
        try:
            while self.flush():
                pass
        except ObjectsError:
            return  # the task is worth more than its log
        finally:
            if self._descriptor >= 0:
                os.close(self._descriptor)
                self._descriptor = -1

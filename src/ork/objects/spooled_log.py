"""A log for a store without files: a local file that is uploaded in chunks."""

from __future__ import annotations

import os

from ork.errors import ObjectsError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ork.objects.attempt_documents import AttemptDocuments


class SpooledLog:
    """Goes on behind what the store has. Whoever has it open calls `flush` now and then, so that others see it grow."""

    def __init__(self, documents: AttemptDocuments, attempt: str) -> None:
        self._documents = documents
        self._attempt = attempt
        self._descriptor = -1
        self._begin = -1  # where in the log the local file begins; -1: not known yet
        self._uploaded = 0

    def fileno(self) -> int:
        if self._descriptor < 0:
            from tempfile import mkstemp

            self._descriptor, path = mkstemp(prefix="ork-log-")
            os.unlink(path)
        return self._descriptor

    def flush(self) -> None:
        if self._descriptor < 0 or os.fstat(self._descriptor).st_size == self._uploaded:
            return
        if self._begin < 0:
            self._begin = self._documents.log_size(self._attempt) or 0
        data = os.pread(self._descriptor, os.fstat(self._descriptor).st_size - self._uploaded, self._uploaded)
        self._documents.write_log(self._attempt, self._begin + self._uploaded, data)
        self._uploaded += len(data)

    def close(self) -> None:
        try:
            self.flush()
        except ObjectsError:
            return  # the task is worth more than its log
        finally:
            if self._descriptor >= 0:
                os.close(self._descriptor)
                self._descriptor = -1

"""The status document of an attempt: replaced as a whole, with a sequence number that only grows."""

from __future__ import annotations

import time

from ork.errors import ObjectsError
from ork.objects.documents import utc_text
from ork.objects.json_text import dumps
from ork.worker.call.results import put_patiently

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ork.objects.attempt_documents import AttemptDocuments
    from ork.objects.documents import Signer


class Ending:
    """How an attempt ended. `output` is {"inline": text}, {"object": key, "size": n} or None.

    With the state "deferred" only the worker has ended: `jobs` will finish the attempt.
    """

    __slots__ = ("exit_code", "failure", "jobs", "metrics", "output", "state")

    def __init__(
        self,
        state: str,
        *,
        exit_code: int | None = None,
        failure: dict[str, Any] | None = None,
        output: dict[str, Any] | None = None,
        metrics: dict[str, float] | None = None,
        jobs: list[dict[str, Any]] | None = None,
    ) -> None:
        self.state = state
        self.exit_code = exit_code
        self.failure = failure
        self.output = output
        self.metrics = metrics
        self.jobs = jobs


def returned(outcome: dict[str, Any]) -> Ending:
    """The ending for the reply of a function call."""
    failure, jobs, metrics = outcome.get("failure"), outcome.get("jobs"), outcome.get("metrics")
    if failure is not None:
        return Ending("failed", exit_code=outcome["exit_code"], failure=failure, metrics=metrics)
    if jobs is not None:
        return Ending("deferred", metrics=metrics, jobs=jobs)
    return Ending("success", exit_code=0, output=outcome["output"], metrics=metrics)


def failed(kind: str, message: str, detail: dict[str, Any] | None = None, *, exit_code: int | None = None) -> Ending:
    return Ending("failed", exit_code=exit_code, failure={"kind": kind, "message": message, "detail": detail})


def only_status(attempt: str, started_at: str, ending: Ending) -> str:
    """The only status of an attempt without earlier ones, unsigned."""
    return dumps(_fields(attempt, 1, ending.state, started_at, ending))


def _fields(attempt: str, number: int, state: str, started_at: str, ending: Ending | None) -> dict[str, Any]:
    now = utc_text(time.time_ns())
    document = {
        "v": 1,
        "attempt": attempt,
        "seq": number,
        "state": state,
        "at": now,
        "started_at": started_at,
        "finished_at": now if ending and ending.jobs is None else None,
        "exit_code": ending.exit_code if ending else None,
        "failure": ending.failure if ending else None,
        "output": ending.output if ending else None,
        "metrics": ending.metrics if ending else None,
    }
    if ending and ending.jobs is not None:
        document["jobs"] = ending.jobs
    return document


class StatusWriter:
    """`report` is called with each status: whether it is the last one, and its bytes. The default is a datagram to the address in the
    spec. `began_at` is the time of an earlier start."""

    _seq = 0
    _versions = 0  # that have been written
    is_preparing = False  # its environment is being built, so its timeout has not started

    def __init__(
        self,
        objects: AttemptDocuments,
        spec: dict[str, Any],
        signer: Signer,
        report: Callable[[bool, bytes], None] | None = None,
        began_at: str | None = None,
    ) -> None:
        self._objects = objects
        self._signer = signer
        self._attempt: str = spec["attempt"]
        self._status_address: str | None = spec["news"]
        self._report = report or self._notify_scheduler
        self._wake_url: str | None = spec.get("wake_url")
        self._started_at = began_at or utc_text(time.time_ns())

    def beat(self) -> None:
        """Write the status `running` with the next number. ObjectsError if it cannot be written."""
        self._seq += 1
        document = self._document("running", None)
        # We are its only writer, so we know whether one exists.
        self._objects.put_status(self._attempt, document, self._versions)
        self._versions += 1
        if self._seq == 1:
            self._report(False, document)

    def finish(self, ending: Ending, *, is_asked_to_end: Callable[[], bool]) -> bool:
        """Write the terminal status. While the disk is full it is retried for long, unless the worker is asked to end."""
        self._seq += 1
        document = self._document(ending.state, ending)
        try:
            self._objects.put_last_status(self._attempt, document, self._versions)
            is_written = True
        except ObjectsError:
            is_written = put_patiently(lambda: self._objects.put_last_status(self._attempt, document), is_asked_to_end)
        self._report(True, document if is_written else b"")
        if self._wake_url:
            from ork.worker.supervise.wake import wake

            wake(self._wake_url, self._attempt, self._signer.token_hash)
        return is_written

    def _document(self, state: str, ending: Ending | None) -> bytes:
        document = _fields(self._attempt, self._seq, state, self._started_at, ending)
        if self.is_preparing and ending is None:
            document["preparing"] = True
        return self._signer.sign(dumps(document))

    def _notify_scheduler(self, _is_over: bool, _document: bytes) -> None:
        """Notify a scheduler on this machine. It is only a hint, so it does not matter whether one receives it."""
        if not self._status_address:
            return
        import _socket

        try:
            messenger = _socket.socket(_socket.AF_UNIX, _socket.SOCK_DGRAM)
            try:
                messenger.setblocking(False)
                messenger.sendto(self._attempt.encode(), self._status_address)
            finally:
                messenger.close()
        except OSError:
            return

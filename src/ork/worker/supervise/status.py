"""The status document of an attempt: replaced as a whole, with a sequence number that only grows."""

from __future__ import annotations

import time

from ork.errors import ObjectsError
from ork.objects.documents import utc_text
from ork.objects.json_text import dumps
from ork.worker.call.storing import put_patiently

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ork.objects.attempt_documents import AttemptDocuments
    from ork.objects.documents import Signer


class Ending:
    """How an attempt ended. `output` is {"inline": text}, {"object": key, "size": n} or None.

    One that is "deferred" has not ended: `jobs` will finish it, and only its worker is done.
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
    """Of a call of a function."""
    failure, jobs, metrics = outcome.get("failure"), outcome.get("jobs"), outcome.get("metrics")
    if failure is not None:
        return Ending("failed", exit_code=outcome["exit_code"], failure=failure, metrics=metrics)
    if jobs is not None:
        return Ending("deferred", metrics=metrics, jobs=jobs)
    return Ending("success", exit_code=0, output=outcome["output"], metrics=metrics)


def failed(kind: str, message: str, detail: dict[str, Any] | None = None, *, exit_code: int | None = None) -> Ending:
    return Ending("failed", exit_code=exit_code, failure={"kind": kind, "message": message, "detail": detail})


def only_word(attempt: str, started_at: str, ending: Ending) -> str:
    """Of an attempt that has said nothing before; to be signed."""
    return dumps(_words(attempt, 1, ending.state, started_at, ending))


def _words(attempt: str, number: int, state: str, started_at: str, ending: Ending | None) -> dict[str, Any]:
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
    """`tell` is how others learn that there is something to see, whether it is the end, and what was written; without
    one, by the address in the spec. `began_at` if the attempt began before now."""

    _seq = 0
    _versions = 0  # that have been written
    is_preparing = False  # what the task needs is being built: its own time has not begun

    def __init__(
        self,
        objects: AttemptDocuments,
        spec: dict[str, Any],
        signer: Signer,
        tell: Callable[[bool, bytes], None] | None = None,
        began_at: str | None = None,
    ) -> None:
        self._objects = objects
        self._signer = signer
        self._attempt: str = spec["attempt"]
        self._news: str | None = spec["news"]
        self._tell = tell or self._send_news
        self._wake_url: str | None = spec.get("wake_url")
        self._started_at = began_at or utc_text(time.time_ns())

    def beat(self) -> None:
        """Says running, with the next number; ObjectsError if it cannot be written."""
        self._seq += 1
        document = self._document("running", None)
        self._put(document)
        if self._seq == 1:
            self._tell(False, document)

    def finish(self, ending: Ending, *, is_told_to_go: Callable[[], bool]) -> bool:
        """The last word. Tried for long while the disk is full, unless somebody wants us gone."""
        self._seq += 1
        document = self._document(ending.state, ending)
        try:
            self._put(document)
            is_written = True
        except ObjectsError:
            is_written = put_patiently(lambda: self._objects.put_status(self._attempt, document), is_told_to_go)
        self._tell(True, document if is_written else b"")
        if self._wake_url:
            from ork.worker.supervise.wake import wake

            wake(self._wake_url, self._attempt, self._signer.token_hash)
        return is_written

    def _put(self, document: bytes) -> None:
        """Nobody but us writes to it, and so it is known whether there is anything to be replaced."""
        self._objects.put_status(self._attempt, document, self._versions)
        self._versions += 1

    def _document(self, state: str, ending: Ending | None) -> bytes:
        document = _words(self._attempt, self._seq, state, self._started_at, ending)
        if self.is_preparing and ending is None:
            document["preparing"] = True
        return self._signer.sign(dumps(document))

    def _send_news(self, _is_over: bool, _document: bytes) -> None:
        """A hint for a scheduler on this machine; whether anybody listens does not matter."""
        if not self._news:
            return
        import _socket

        try:
            messenger = _socket.socket(_socket.AF_UNIX, _socket.SOCK_DGRAM)
            try:
                messenger.setblocking(False)
                messenger.sendto(self._attempt.encode(), self._news)
            finally:
                messenger.close()
        except OSError:
            return

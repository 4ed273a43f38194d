"""A task that is a Python function, seen from the shim: a child that is given it, and its reply through a pipe."""

from __future__ import annotations

import os

from ork.errors import DocumentError
from ork.objects.documents import DOCUMENT_LIMIT
from ork.objects.json_text import strict_json
from ork.worker.child import Child, take_spare
from ork.worker.process import ended_badly, log_tail
from ork.worker.pump import Stream
from ork.worker.status import Ending, failed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ork.objects.local import LocalObjects
    from ork.worker.log import Log


class FunctionJob:
    """Standard output and standard error are one pipe to the log, so that whatever is printed stays in its order; what
    the function returned comes back on a pipe of its own."""

    def __init__(self, objects: LocalObjects, folder: str, spec: dict[str, Any]) -> None:
        self._objects = objects
        self._folder = folder
        self._spec = spec
        self._source = -1
        self._reply = bytearray()
        self._log: Log | None = None
        self._printed: Stream | None = None

    def start(self, log: Log) -> Ending | int:
        self._log = log
        try:
            child = self._with_a_spare() or self._with_a_new_one()
        except OSError as error:
            return failed("start", f"no process could be made: {error.strerror}")
        self._source = child.source
        os.set_blocking(self._source, False)
        self._printed = log.attach(Stream(child.printed, log))
        return child.pid

    def _with_a_spare(self) -> Child | None:
        spare = take_spare()
        if spare is None or spare.give(self._objects, self._folder, self._spec):
            return spare
        spare.dismiss()  # somebody killed it while it waited
        return None

    def _with_a_new_one(self) -> Child:
        child = Child()
        child.give(self._objects, self._folder, self._spec)
        return child

    def pipes(self) -> dict[int, Callable[[], bool]]:
        readers = {self._source: self._read_reply}
        return readers | {self._printed.source: self._printed.empty} if self._printed else readers

    def ending(self, wait_status: int) -> Ending:
        if self._reply:
            return self._replied()
        if wait_status == 0:
            detail = {"tail": log_tail(self._objects, self._folder, self._log)}
            return failed("exit", "the process exited before the function returned", detail, exit_code=0)
        return ended_badly(wait_status, self._objects, self._folder, self._log)

    def clean(self) -> None:
        for descriptor in self.pipes():
            if descriptor >= 0:
                os.close(descriptor)

    def _read_reply(self) -> bool:
        try:
            chunk = os.read(self._source, DOCUMENT_LIMIT)
        except BlockingIOError:
            return True
        if len(self._reply) <= DOCUMENT_LIMIT:
            self._reply += chunk
        return bool(chunk)

    def _replied(self) -> Ending:
        try:
            reply = strict_json(bytes(self._reply), max_size=DOCUMENT_LIMIT)
        except DocumentError as error:
            return failed("internal", f"the task's reply was unreadable: {error}")
        if reply["failure"] is not None:
            return Ending("failed", exit_code=reply["exit_code"], failure=reply["failure"], metrics=reply["metrics"])
        if reply["jobs"] is not None:
            return Ending("deferred", metrics=reply["metrics"], jobs=reply["jobs"])
        return Ending("success", exit_code=0, output=reply["output"], metrics=reply["metrics"])

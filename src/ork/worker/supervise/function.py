"""A task that is a Python function, seen from the shim: a child that is given it, and its reply through a pipe."""

from __future__ import annotations

import os

from ork.errors import DocumentError, ObjectsError
from ork.objects.documents import DOCUMENT_LIMIT
from ork.objects.json_text import strict_json
from ork.objects.opening import open_values
from ork.objects.references import output_reference
from ork.worker.call.environment import may_have_files, remove_inputs
from ork.worker.call.loading import make_ready
from ork.worker.call.task_process import call_here
from ork.worker.supervise.confinement import TaskUserError, confinement_of
from ork.worker.supervise.log import Stream
from ork.worker.supervise.process import Child, dismiss_waiting, ended_without_reply, is_confined, keep, take_waiting
from ork.worker.supervise.status import Ending, failed, returned

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ork.objects.attempt_documents import AttemptDocuments
    from ork.worker.supervise.confinement import Confinement
    from ork.worker.supervise.job import Host
    from ork.worker.supervise.log import Log

_CHUNK = 1 << 16


class FunctionJob:
    """Standard output and standard error are one pipe to the log, so that whatever is printed stays in its order; what
    the function returned comes back on a pipe of its own."""

    is_started = is_over = leaves_nothing = False
    is_swift = False
    fork_server = 0
    main_status: int | None = None

    def __init__(
        self,
        objects: AttemptDocuments,
        spec: dict[str, Any],
        host: Host | None = None,
    ) -> None:
        self._objects = objects
        self._spec = spec
        self._host = host
        self._child: Child | None = None
        self._confinement: Confinement | None = None
        self._reply = bytearray()
        self._log: Log | None = None
        self._printed: Stream | None = None

    def start(self, log: Log) -> Ending | int:
        try:
            if is_confined(self._spec):
                self._confinement = confinement_of(self._spec)
            if self._confinement is None:
                child = self._child = self._with_one_that_waits() or self._with_a_new_one()
            else:
                child = self._child = self._with_a_confined_one(self._confinement)
        except TaskUserError as error:
            return failed("start", str(error))
        except ObjectsError as error:
            return failed("input", error.message)
        except OSError as error:
            return failed("start", f"no process could be made: {error.strerror}")
        self._log = log
        self._printed = log.attach(Stream(child.printed, log))
        if child.stays:
            self.fork_server = child.pid
            return 0
        return child.pid

    def _with_one_that_waits(self) -> Child | None:
        child = take_waiting(self._spec)
        if child is None or child.give(self._objects, self._spec):
            return child
        child.dismiss()  # somebody killed it while it waited
        return None

    def _with_a_new_one(self) -> Child:
        # At the last moment: a process copies each page that it or the other one changes while both live.
        spec = self._spec
        if self._host is not None and spec["kind"] == "python" and spec["file"] is not None:
            make_ready(spec["root"], spec["file"], spec["paths"])
        objects = open_values(
            self._objects.url, spec["durability"], spec.get("access", "")
        )  # without what we have open
        return Child(lambda answer: call_here(objects, spec, answer))

    def _with_a_confined_one(self, confinement: Confinement) -> Child:
        """A new process for this attempt alone, forked from the worker and confined before user code is loaded."""
        dismiss_waiting()
        spec, exchange = self._spec, confinement.exchange
        objects = open_values(self._objects.url, spec["durability"], spec.get("access", ""))
        if exchange is not None:
            objects = exchange.objects(self._objects, spec)
            exchange.hand_over()
        return Child(lambda answer: call_here(objects, spec, answer), confine=confinement.enter)

    def pipes(self) -> dict[int, Callable[[], bool]]:
        if self._child is None or self._printed is None:
            return {}
        pipes = {self._child.source: self._read_reply, self._printed.source: self._printed.empty}
        return pipes | {self._child.ends: self._read_end} if self._child.stays else pipes

    @property
    def reply(self) -> int:
        return -1 if self._child is None else self._child.source

    def ending(self, wait_status: int) -> Ending:
        if self._reply:
            ending = self._replied()
        else:
            ending = ended_without_reply(wait_status, self._objects, self._spec["attempt"], self._log)
        return ending if self._confinement is None else self._confinement.explain(ending, self._log)

    def clean(self) -> None:
        if self._confinement is not None:
            self._confinement.remove()
        elif may_have_files(self._spec):
            remove_inputs(self._objects, self._spec["attempt"])
        if self._child is None:
            return
        if self._child.stays:
            if self._reply.endswith(b"\n") and self.main_status is not None:
                keep(self._child)
            else:
                self._child.dismiss()
        else:
            self._child.close()
        self._child = None

    def _read_end(self) -> bool:
        assert self._child is not None
        self.main_status = self._child.read_end()
        return False

    def _read_reply(self) -> bool:
        assert self._child is not None
        try:
            chunk = os.read(self._child.source, _CHUNK)
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
        if self._host is not None and "imports" in reply:
            self._host.report_imports(self._spec, reply["imports"])
        self.is_swift = "is_swift" in reply
        ending = returned(reply)
        return ending if self._confinement is None else self._taken_over(ending, self._confinement)

    def _taken_over(self, ending: Ending, confinement: Confinement) -> Ending:
        """Moves values and a large output, which the process of another user wrote to its own folder, to the object store."""
        if confinement.exchange is None or ending.output is None:
            return ending
        try:
            confinement.exchange.take_values(self._objects, self._spec["attempt"], ending.output)
            if "object" not in ending.output:
                return ending
            size = confinement.exchange.take_output(self._objects, self._spec["attempt"], self._spec["output_limit"])
        except (OSError, ObjectsError) as error:
            return failed("output", f"the output could not be stored: {error}")
        if size is None:
            return failed("output", "the output that the task reported does not exist")
        ending.output = {"object": output_reference(self._spec["attempt"]), "size": size}
        return ending

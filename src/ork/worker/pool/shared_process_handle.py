"""The worker's handle of a shared process, and the job of one call in it."""

from __future__ import annotations

import marshal
import os
import select
from _socket import AF_UNIX, MSG_DONTWAIT, SOCK_SEQPACKET, socketpair
from mmap import mmap

from ork.objects.documents import DOCUMENT_LIMIT
from ork.objects.json_text import strict_json
from ork.worker.pool.shared_process import COUNT_BYTES, ENDS, IMPORTS, LARGEST_ORDER, LAST, WAITS, SharedProcess
from ork.worker.supervise.log import Stream
from ork.worker.supervise.process import ended_without_reply, fork_into, wait_or_kill
from ork.worker.supervise.status import Ending

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from ork.objects.attempt_documents import AttemptDocuments
    from ork.worker.pool.reusable_worker import Order, ReusableWorker
    from ork.worker.supervise.log import Log

_CHUNK = 1 << 16
_SIGKILL = 9


class SharedReply:
    """A reply of a shared process. `document` is the status if the call has ended, else a reason or a report."""

    __slots__ = ("attempt", "document", "durability", "word")

    def __init__(self, line: bytes) -> None:
        self.word, self.attempt, self.durability, self.document = line.split(b"\t", 3)

    def began_at(self) -> str:
        return str(strict_json(self.document, max_size=DOCUMENT_LIMIT)["started_at"])


class SharedProcessHandle:
    """The process and its pipes. OSError if it cannot be created."""

    def __init__(self, host: ReusableWorker) -> None:
        self._orders, theirs = socketpair(AF_UNIX, SOCK_SEQPACKET)
        self._theirs = theirs
        self.answers, answer = os.pipe()
        self.printed, speak = os.pipe()
        go, self._go = os.pipe()
        self.is_gone = False
        self.imports: list[SharedReply] = []  # reports that nobody has sent on yet
        self._partial = self._errors = b""
        self._begun, self._ended = mmap(-1, COUNT_BYTES), 0  # how many calls: the process counts there

        def begin() -> NoReturn:
            for descriptor in (self._orders.detach(), self.answers, self.printed, self._go):
                os.close(descriptor)
            os.dup2(speak, 1)
            os.dup2(speak, 2)
            os.close(speak)
            SharedProcess(theirs, answer, go, self._begun, host.tag, host.process_entries).serve()

        try:
            self.pid = fork_into(begin)
        except OSError:
            self.close()
            raise
        finally:
            for descriptor in (answer, speak, go):
                os.close(descriptor)
        os.set_blocking(self.answers, False)

    def give(self, order: Order) -> bool:
        """Queue an order. False if the socket is full."""
        try:
            self._orders.send(marshal.dumps(order.for_process()), MSG_DONTWAIT)
        except BlockingIOError:
            return False
        return True

    def reclaim(self) -> set[bytes]:
        """Remove all queued orders and return their attempts. The process may take some of them in the meantime."""
        attempts = set()
        try:
            while order := self._theirs.recv(LARGEST_ORDER, MSG_DONTWAIT):
                attempts.add(marshal.loads(order)[0])
        except BlockingIOError:
            pass
        return attempts

    def wait(self, control: int, wake: int, seconds: float, *, for_answers: bool = True) -> set[int]:
        """Wait for input, and return the descriptors that are readable."""
        poller = select.poll()
        for descriptor in (control, wake, self.printed, self.answers if for_answers else -1):
            if descriptor >= 0:
                poller.register(descriptor, select.POLLIN)
        return {descriptor for descriptor, _ in poller.poll(int(seconds * 1000 + 0.999))}

    def read_answers(self) -> list[SharedReply]:
        """The complete replies that are available."""
        try:
            chunk = os.read(self.answers, _CHUNK)
            self.is_gone = self.is_gone or not chunk
        except BlockingIOError:
            return []
        *lines, self._partial = (self._partial + chunk).split(b"\n")
        answers = [SharedReply(line) for line in lines]
        self.imports += [answer for answer in answers if answer.word == IMPORTS]
        answers = [answer for answer in answers if answer.word != IMPORTS]
        self._ended += sum(answer.word in (*ENDS, WAITS, LAST) for answer in answers)
        return answers

    @property
    def has_begun(self) -> bool:
        """True if the process has won a gate and has not reported its end yet."""
        return int.from_bytes(self._begun[:COUNT_BYTES], "little") > self._ended

    def read_errors(self) -> str:
        """What the process printed before it began any call."""
        while self.printed in self.wait(-1, -1, 0.0) and (chunk := os.read(self.printed, _CHUNK)):
            self._errors += chunk
        return self._errors.decode("utf-8", "replace")

    def go_on(self) -> None:
        """Let the process continue after WAITS or ALONE."""
        os.write(self._go, b".")

    def kill(self) -> None:
        """Kill the process and wait until it is a zombie."""
        self.reclaim()
        try:
            os.kill(self.pid, _SIGKILL)
            os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)  # its status is read later
        except (ProcessLookupError, ChildProcessError):
            return

    def dismiss(self) -> None:
        """Let the process end, with some time for its exit functions."""
        self.reclaim()
        self.close()
        wait_or_kill(self.pid)

    def close(self) -> None:
        self._orders.close()
        self._theirs.close()
        for descriptor in (self.answers, self.printed, self._go):
            os.close(descriptor)
        self._begun.close()


class SharedJob:
    """One call in a shared process, with its reply if there is one already."""

    reply, fork_server, main_status, is_swift, is_started = -1, 0, None, False, True

    def __init__(
        self, objects: AttemptDocuments, attempt: str, process: SharedProcessHandle, reply: SharedReply | None
    ) -> None:
        self._objects = objects
        self._attempt = attempt
        self._process = process
        self._reply = reply
        self._log: Log | None = None
        self._printed: Stream | None = None

    def start(self, log: Log) -> Ending | int:
        self._log = log
        self._printed = log.attach(Stream(self._process.printed, log))
        return self._process.pid

    def pipes(self) -> dict[int, Callable[[], bool]]:
        assert self._printed is not None
        return {self._process.answers: self._read_reply, self._process.printed: self._printed.empty}

    @property
    def is_over(self) -> bool:
        return self._reply is not None and self._reply.word in (*ENDS, WAITS)

    @property
    def leaves_nothing(self) -> bool:
        return self._reply is not None and self._reply.word in ENDS

    @property
    def waits(self) -> bool:
        return self._reply is not None and self._reply.word == WAITS

    def ending(self, wait_status: int) -> Ending:
        if self._reply is None:
            return ended_without_reply(wait_status, self._objects, self._attempt, self._log)
        said = strict_json(self._reply.document, max_size=DOCUMENT_LIMIT)
        details = {name: said.get(name) for name in ("exit_code", "failure", "output", "metrics", "jobs")}
        return Ending(said["state"], **details)

    def clean(self) -> None:
        """Nothing to do: the process is used again."""

    def _read_reply(self) -> bool:
        for answer in self._process.read_answers():
            self._reply = answer
        return not self._process.is_gone

"""A worker that performs one attempt after the other, so that only the user's process is started anew.

It has one attempt at a time (several with `isolation: shared`, see `shared_supervisor`) and a control socket to the executor:
attempts and requests to stop come in, reports go out. When the executor is gone it finishes what it has started, and ends.
"""

from __future__ import annotations

import os
import select

from ork.errors import ObjectsError
from ork.objects.documents import Signer, token_hash
from ork.objects.json_text import own_json
from ork.worker.call.seen_imports import imports_report
from ork.worker.pool.task_fork_server import TaskForkServer
from ork.worker.supervise import process
from ork.worker.supervise.claim import opened_for, process_entries, read_spec, win_gate
from ork.worker.supervise.guard import Guard
from ork.worker.supervise.process import dismiss_waiting, is_confined, is_dbt, keep, waiting
from ork.worker.supervise.shim import Shim
from ork.worker.system import processes
from ork.worker.system.processes import Signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ork.worker.call.packages import PackageFingerprint
    from ork.worker.pool.shared_supervisor import SharedSupervisor
    from ork.worker.system.processes import AttemptTag

IDLE_SECONDS = 60.0
LARGEST_MESSAGE = 1 << 16
LARGEST_FACTS = 1 << 15
MOST_ATTEMPTS = 10_000  # so that nothing can accumulate for long
_STOP = b"stop "
_BACK = b"back"


class Order:
    """A request to perform an attempt. `document` is its spec, if it was sent along."""

    __slots__ = ("attempt", "document", "request", "tries")

    def __init__(self, head: bytes, document: bytes) -> None:
        self.document = document
        self.request: dict[str, Any] = own_json(head)
        self.attempt = str(self.request["attempt"]).encode()
        self.tries = 0

    def for_process(self) -> tuple[bytes, str, str, str, int, bytes]:
        """The arguments of the shared process's `_perform`."""
        request = self.request
        return (
            self.attempt,
            request["token"],
            request["objects"],
            request["attempt"],
            request["position"],
            self.document,
        )

    def log_error(self, why: str) -> None:
        """Add a line to the attempt's log, if possible: something went wrong before its task began."""
        try:
            line = f"ork-worker: {why}\n".encode("utf-8", "replace")
            opened_for(self.request, "normal").append_log(self.request["attempt"], line)
        except ObjectsError:
            return


class ReusableWorker:
    def __init__(self, control: int, tag: AttemptTag, fingerprint: PackageFingerprint | None) -> None:
        self.descriptor = control
        self.tag = tag
        self._fingerprint = fingerprint
        self.signals = Signals()
        self.process = processes.own_process()
        self.process_entries = process_entries(self.process)
        self._attempt = b""
        # The worker that was forked before the server had loaded anything would load it again for every attempt.
        self._room = 1 if fingerprint is None else MOST_ATTEMPTS
        self.is_open = True
        self._called: tuple[str, list[str], str | None, str] | None = (
            None  # root, paths, file and objects URL of the last function
        )
        self._guard: Guard | None = None
        self._reported: set[bytes] = set()  # reports of imports that were sent
        self._last_status = b""
        self._messages: list[bytes] = []  # messages to be sent together
        self._waiting: list[Order] = []  # orders that have not begun
        self._sharing: SharedSupervisor | None = None
        self._is_known = self._has_reported = False  # `took` was sent: by this worker, for the current attempt
        self._is_swift = False  # the last task never waited for anything
        self._poller = select.poll()
        self._poller.register(control, select.POLLIN)
        self._poller.register(self.signals.wake, select.POLLIN)
        process.private.update((control, self.signals.wake, self.signals.ring))

    def serve(self) -> int:
        """Perform one attempt after the other until there are no more."""
        while self._room and self._has_next():
            if self._waiting[0].request["isolation"] == "shared":
                self._share()
            else:
                self._take(self._waiting.pop(0))
        dismiss_waiting()
        if self._sharing is not None:
            self._sharing.dismiss()
        if self._guard is not None:
            self._guard.dismiss()
        return 0

    def is_guarded(self) -> bool:
        """True if processes that are started from now on end with this one, even if it is killed."""
        if self._guard is None and self._fingerprint is not None:  # else it performs only one attempt
            try:
                self._guard = Guard(self.tag)
            except OSError:
                return False
        return self._guard is not None

    def report_imports(self, spec: dict[str, Any], names: list[str]) -> None:
        report = None if is_confined(spec) else imports_report(spec, names)
        if report is not None:
            self.send_imports(self._attempt, report)

    def send_imports(self, attempt: bytes, report: bytes) -> None:
        """Send a report of imports, once."""
        if report not in self._reported:
            self._reported.add(report)
            self._report(b"imports", attempt, report)

    def look(self) -> bool:
        """Read one message of the executor: a request to stop, a request to return orders, or new orders. False if the executor
        is gone."""
        message = self._read()
        if message.startswith(_STOP):
            self.signals.terms += self._has(message[len(_STOP) :])
        elif message == _BACK:
            begun = self._sharing.reclaim() if self._sharing is not None else []
            self._waiting.clear()
            self._report(_BACK, b"", b"\t".join(begun or [self._attempt]))
        else:
            self._waiting.extend(_orders(message))
        if not self.is_open:
            if self._sharing is not None:
                self._sharing.reclaim()
            self._waiting.clear()  # the next scheduler starts them
        return self.is_open

    def _has(self, attempt: bytes) -> bool:
        if self._sharing is not None and self._sharing.is_at_work:
            return self._sharing.stop(attempt)
        return attempt == self._attempt

    def _has_next(self) -> bool:
        """Wait for an order. False when there will be none."""
        while self.is_open and not self.signals.terms:
            if self._waiting:
                return True
            ready = [descriptor for descriptor, _ in self._poller.poll(IDLE_SECONDS * 1000)]
            if not ready:
                return False
            if self.signals.wake in ready:
                self.signals.quiet()
            if self.descriptor in ready:
                # An outdated worker ends, and the executor gives the order to another.
                if not self.is_fresh():
                    return False
                self.look()
        return False

    def _share(self) -> None:
        """Perform attempts in a shared process until none is waiting."""
        if self._sharing is None:
            from ork.worker.pool.shared_supervisor import SharedSupervisor

            self._sharing = SharedSupervisor(self, self._waiting)
        dismiss_waiting()
        self._report_start(self._waiting[0].attempt)
        try:
            self._sharing.work()
        except Exception:
            self._fail(self._sharing.give_up())

    def _take(self, order: Order) -> None:
        """Perform the attempt, unless another worker has won its gate."""
        if self._sharing is not None:
            self._sharing.dismiss()  # all children of this process belong to the attempt
        self._room = max(0, self._room - 1)
        self.have(order, self._perform)
        if self._room:
            self._report(
                b"swift" if self._is_swift else b"over", order.attempt, self._last_status
            )  # and the next may come
            if self.is_open and self._called is not None and order.request["isolation"] != "shared":
                self._make_next(*self._called)

    def have(self, order: Order, perform: Callable[[Order], None]) -> None:
        """Perform an attempt to its end. An error of the worker itself goes to the attempt's log."""
        self._attempt = order.attempt
        self.tag.write(order.attempt)
        self._last_status, self._has_reported, self._is_swift = b"", False, False
        if not self._is_known:
            self._report_start(order.attempt)
        try:
            perform(order)
        except Exception:
            self._fail(order)
        self.tag.write(b"")
        self._attempt = b""

    def _report_start(self, attempt: bytes) -> None:
        """Send the first message, so that the executor knows that workers start here."""
        if not self._is_known:
            self.report_taken(attempt)

    def _fail(self, order: Order | None) -> None:
        import traceback

        if order is not None:
            order.log_error(traceback.format_exc())
        self._room = 0

    def _perform(self, order: Order) -> None:
        request = order.request
        secret = token_hash(request["token"])
        try:
            objects, spec = read_spec(
                request["objects"], request["attempt"], secret, request["position"], order.document
            )
            signer = Signer(secret)
            is_ours = win_gate(objects, spec["attempt"], signer, self.process_entries, self._report_taken)
        except ObjectsError as error:
            order.log_error(error.message)
            is_ours = False
        if not is_ours:
            return
        if is_dbt(spec):
            self._room = max(self._room, 1)  # for the dbt that stays, even if this worker was meant for one attempt
        # Most likely the next task calls a function of the same project.
        is_function = spec["kind"] == "python" and not is_confined(spec)
        self._called = (spec["root"], spec["paths"], spec["file"], objects.url) if is_function else None
        is_alone = request["isolation"] != "shared"
        if self._called is not None and waiting() is None and self._fingerprint is not None and is_alone:
            self._make_next(*self._called)  # before this process uses more memory, which would make the fork slower
        shim = Shim(objects, spec, signer, self)
        if not shim.run():
            self._room = 0
        self._is_swift = shim.is_swift

    def _make_next(self, root: str, paths: list[str], file: str | None, objects: str) -> None:
        """Have the process of the next function forked in advance. If that fails, the function gets a new process."""
        there = waiting()
        if not isinstance(there, TaskForkServer) or (there.root, there.paths) != (root, paths):
            dismiss_waiting()
            try:
                there = TaskForkServer(self.tag, root, objects, paths)
            except OSError:
                return
            keep(there)
        there.make_next(file)

    def report_status(self, is_over: bool, document: bytes) -> None:
        if is_over and self._room:
            self._last_status = document  # sent after the clean-up
        else:
            self._report_taken()
            self._report(b"news", self._attempt, document)

    def _report_taken(self) -> None:
        self.report_taken(self._attempt)

    def report_taken(self, attempt: bytes) -> None:
        """Report that the attempt was taken. Not done for short tasks, because each message wakes the scheduler."""
        if not self._has_reported:
            self._has_reported = self._is_known = True
            self._report(b"took", attempt, f"{self.process['pid']} {self.process['start_time'] or 0}".encode())

    def _read(self) -> bytes:
        try:
            message = os.read(self.descriptor, LARGEST_MESSAGE)
        except ConnectionResetError:
            return b""  # the executor left before it read all messages; its own last ones can still be read
        except OSError:
            message = b""
        self.is_open = bool(message)
        return message

    # ── for the shared supervisor ────────────────────────────────────────────────────────────────

    @property
    def room(self) -> int:
        """Number of attempts that this worker may still perform."""
        return self._room

    def over(self, order: Order, document: bytes, why: str = "", *, word: bytes = b"over") -> None:
        """Report that the worker has finished an order. `document` is the last status, `why` the reason if it did nothing,
        which goes to the attempt's log, and `word` the kind of message."""
        if why:
            order.log_error(why)
        self._room = max(0, self._room - 1)
        if not self._room:
            self.report_taken(order.attempt)  # the end of this process reports the end
        self._messages.append(_word(word if self._room else b"news", order.attempt, document or self._last_status))
        self._has_reported, self._last_status = False, b""

    def perform_alone(self, order: Order) -> None:
        self.send_all()
        self._take(order)

    def is_fresh(self) -> bool:
        """True if the installed packages have not changed since they were loaded. A task may install some for the next."""
        return self._fingerprint is None or self._fingerprint.is_current()

    def leave(self) -> None:
        """Take no more orders."""
        self._room = 0

    def send_all(self) -> None:
        while self._messages:
            size = many = 0
            for word in self._messages:
                size += len(word) + 1
                if many and size > LARGEST_MESSAGE:
                    break
                many += 1
            self._send(b"\n".join(self._messages[:many]))
            del self._messages[:many]

    def _report(self, word: bytes, attempt: bytes, facts: bytes) -> None:
        if self._messages:
            self.send_all()
        self._send(_word(word, attempt, facts))

    def _send(self, message: bytes) -> None:
        try:
            os.write(self.descriptor, message)
        except OSError:
            return  # the executor is gone; the next one finds the attempt by its gate


def _word(word: bytes, attempt: bytes, facts: bytes) -> bytes:
    return b"%b\t%b\t%b" % (word, attempt, facts if len(facts) <= LARGEST_FACTS else b"")


def _orders(message: bytes) -> list[Order]:
    """Orders are two lines each: the request, and its spec or nothing."""
    lines = message.split(b"\n")
    return [Order(*lines) for lines in zip(lines[::2], lines[1::2], strict=False)]

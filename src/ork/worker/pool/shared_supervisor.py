"""Supervises the attempts of a shared process (`isolation: shared`) in its worker.

The process (`shared_process`) has several orders queued and replies in their order. For a call that leaves nothing behind, the
supervisor only writes its status. Any other call (it prints, takes long, fails, is stopped or dies) is supervised by a shim like
every attempt. Orders are queued in a socket of which both ends are open here. Each is received by exactly one side, so the worker
can reclaim all but the current one.
"""

from __future__ import annotations

import os
import time

from ork.errors import ObjectsError
from ork.objects.documents import Signer, open_signed, token_hash, utc_text
from ork.worker.call.results import PATIENCE_SECONDS
from ork.worker.pool.shared_process import ALONE, ENDS, LAST, NOTHING, UNFIT, WAITS
from ork.worker.pool.shared_process_handle import SharedJob, SharedProcessHandle, SharedReply
from ork.worker.supervise.claim import opened_for, read_spec
from ork.worker.supervise.shim import Shim
from ork.worker.system import processes
from ork.worker.system.processes import SEVERAL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ork.objects.attempt_documents import AttemptDocuments
    from ork.worker.pool.reusable_worker import Order, ReusableWorker

FIRST_LOOK_SECONDS = 0.05
TOGETHER_SECONDS = 0.002  # replies that follow each other so soon are reported together
LOOK_AGAIN_SECONDS = 1.0
WRITE_AGAIN_SECONDS = 1.0
_MOST_TRIES = 3  # processes that are started for one order and die before they begin
_MOST_GIVEN = 64  # more than a process can finish before its replies are read again


class Unwritten:
    """The end of an attempt that could not be written, for example because the disk is full."""

    def __init__(self, objects: AttemptDocuments, order: Order, answer: SharedReply, terms: int) -> None:
        self.objects, self.order, self.answer = objects, order, answer
        self.is_written = False
        self.terms = terms  # number of SIGTERMs by then
        self.give_up_at = time.monotonic() + PATIENCE_SECONDS


class SharedShim(Shim):
    """Supervises one attempt of a shared process. With each heartbeat it also tries again to write the ends of others."""

    before_beat: Callable[[], None]

    def _beat(self, now: float, heard_at: float) -> tuple[float, float]:
        self.before_beat()
        return super()._beat(now, heard_at)


class SharedSupervisor:
    """`waiting` is the host's list of orders. Those given to the process are removed from it, and inserted again if reclaimed."""

    def __init__(self, host: ReusableWorker, waiting: list[Order]) -> None:
        self._host = host
        self._waiting = waiting
        self._given: list[Order] = []
        self._unwritten: list[Unwritten] = []  # ends that could not be written; until they are, nothing begins
        self._written: list[Unwritten] = []  # ends that were written or given up later, to be reported
        self._write_again_at = 0.0
        self._process: SharedProcessHandle | None = None
        self._since = 0.0  # when the first of those given began, at the latest
        self._is_watched = False  # the first of those given, by a shim
        self._is_stopping = False  # an attempt is being stopped: nothing begins
        self._are_more_to_come = False  # replies are expected soon
        self._looked_at = time.monotonic()
        processes.become_subreaper()  # processes that a function leaves behind become our children

    def work(self) -> None:
        """Perform waiting orders until none is left for a shared process."""
        while True:
            self._give()
            self._host.send_all()
            if self._given:
                self._wait()
            elif self._unwritten:
                time.sleep(max(0.0, self._write_again_at - time.monotonic()))
            else:
                self._host.tag.write(b"")
                return
            self._write_again()
            self._report_written()

    def dismiss(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.dismiss()

    def reclaim(self) -> list[bytes]:
        """Reclaim all orders that the process has not received. Returns the attempts that are not reclaimed."""
        attempts = self._process.reclaim() if self._process is not None else ()
        for order in [order for order in reversed(self._given) if order.attempt in attempts]:
            self._given.remove(order)
            self._waiting.insert(0, order)
        ended = [end.order.attempt for end in (*self._written, *self._unwritten)]
        return [*ended, *(order.attempt for order in self._given)]

    def give_up(self) -> Order | None:
        """After an internal error: kill the process and return the order that it was performing."""
        first: Order | None = self._given[0] if self._given else None
        self.reclaim()
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.close()
        return first

    @property
    def is_at_work(self) -> bool:
        return bool(self._given or self._unwritten)

    def stop(self, attempt: bytes) -> bool:
        """True if this attempt has begun. Otherwise it will not begin."""
        if not self._is_watched:
            self.reclaim()
            self._is_stopping = True
            self._read_replies()
            self._is_stopping = False
        for order in [order for order in self._waiting if order.attempt == attempt]:
            self._waiting.remove(order)
            self._host.over(order, b"")
        return bool(self._given) and self._given[0].attempt == attempt

    def _give(self) -> None:
        is_held = self._host.signals.terms or self._unwritten or not self._is_fresh()
        room = 0 if is_held else min(_MOST_GIVEN, self._host.room)
        while self._waiting and self._waiting[0].request["isolation"] == "shared" and len(self._given) < room:
            if not self._given:
                self._host.tag.write(SEVERAL)
            if self._process is None:
                self._process = SharedProcessHandle(self._host)
            if not self._process.give(self._waiting[0]):
                return
            self._given.append(self._waiting.pop(0))
            if len(self._given) == 1:
                self._since = time.monotonic()

    def _is_fresh(self) -> bool:
        """True if the worker may take orders. Packages are checked once a second, because they may change while it is busy."""
        now = time.monotonic()
        if now - self._looked_at > LOOK_AGAIN_SECONDS:
            self._looked_at = now
            if not self._host.is_fresh():
                self._host.leave()
        return self._host.room > 0

    def _wait(self) -> None:
        """Wait for a reply, a message of the executor, or a reason to check the current call."""
        assert self._process is not None
        host, process = self._host, self._process
        control = host.descriptor if host.is_open else -1
        ready = set()
        if self._are_more_to_come:
            ready = process.wait(control, host.signals.wake, TOGETHER_SECONDS, for_answers=False)
        if not ready:
            pause = max(0.0, self._since + FIRST_LOOK_SECONDS - time.monotonic())
            ready = process.wait(control, host.signals.wake, pause)
        if host.signals.wake in ready:
            host.signals.quiet()
        if host.descriptor in ready:
            host.look()
        has_answered = self._read_replies()
        self._are_more_to_come = has_answered and bool(self._given)
        is_hurried = host.signals.terms or not host.is_open or self._unwritten
        if process.printed in ready or process.is_gone or is_hurried or not (ready or has_answered):
            self._check_current()

    def _read_replies(self) -> bool:
        """Handle the replies of the process. True if there were any."""
        answers = self._process.read_answers() if self._process is not None else []
        self._send_imports()
        if answers:
            self._since = time.monotonic()
        ends: list[tuple[Order, SharedReply]] = []
        try:
            for answer in answers:
                if not self._given or self._given[0].attempt != answer.attempt:
                    raise RuntimeError(f"unexpected reply for {answer.attempt!r}")
                if answer.word in ENDS:
                    ends.append((self._given.pop(0), answer))
                else:
                    self._write(ends)
                    self._answered(self._given[0], answer)
        finally:
            self._write(ends)
        return bool(answers)

    def _send_imports(self) -> None:
        while self._process is not None and self._process.imports:
            seen = self._process.imports.pop()
            self._host.send_imports(seen.attempt, seen.document)

    def _answered(self, order: Order, answer: SharedReply) -> None:
        """Handle a reply other than a plain end."""
        if answer.word in (WAITS, LAST):
            self.reclaim()
            self._watch(answer)
            return
        self._given.pop(0)
        if answer.word == NOTHING:
            self._host.over(order, b"", why=answer.document.decode("utf-8", "replace"))
        else:
            self.reclaim()
            self.dismiss()
            if answer.word == ALONE and not self._is_stopping:
                self._host.perform_alone(order)
            else:
                assert answer.word in (ALONE, UNFIT)
                self._waiting.insert(0, order)

    def _write(self, ends: list[tuple[Order, SharedReply]]) -> None:
        """Write the last statuses, together if possible, and report them. Empties the list."""
        by_place: dict[AttemptDocuments, list[tuple[Order, SharedReply]]] = {}
        for order, answer in ends:
            objects = opened_for(order.request, answer.durability.decode())
            by_place.setdefault(objects, []).append((order, answer))
        ends.clear()
        for objects, group in by_place.items():
            try:
                objects.put_first_statuses([(order.request["attempt"], answer.document) for order, answer in group])
            except ObjectsError:
                terms = self._host.signals.terms
                self._unwritten += [Unwritten(objects, order, answer, terms) for order, answer in group]
                self.reclaim()  # the current call is supervised, and fenced, like any attempt
                continue
            for order, answer in group:
                self._host.over(order, answer.document, word=ENDS[answer.word])

    def _write_again(self) -> None:
        """Try again to write the ends that could not be written. They are given up after a while, or at SIGTERM."""
        now = time.monotonic()
        if not self._unwritten or now < self._write_again_at:
            return
        ends, self._unwritten, self._write_again_at = self._unwritten, [], now + WRITE_AGAIN_SECONDS
        for end in ends:
            try:
                end.objects.put_last_status(end.order.request["attempt"], end.answer.document)
                end.is_written = True
            except ObjectsError:
                if now < end.give_up_at and self._host.signals.terms <= end.terms:
                    self._unwritten.append(end)
                    continue
            self._written.append(end)

    def _report_written(self) -> None:
        """Report ends that were written late. Not while an attempt is supervised: the host reports one at a time."""
        for end in self._written:
            if not end.is_written:
                self.reclaim()
                self._host.leave()
            self._host.over(end.order, end.answer.document if end.is_written else b"", word=ENDS[end.answer.word])
        self._written.clear()

    def _check_current(self) -> None:
        """The current call takes long, prints, is to be stopped, or has died: supervise it, or begin it elsewhere."""
        self.reclaim()
        self._read_replies()
        if not self._given:
            if self._process is not None and self._process.is_gone:
                self.dismiss()
            return
        assert self._process is not None
        if self._process.has_begun:
            self._watch(None)
        elif self._process.is_gone or self._host.signals.terms:
            self._begin_elsewhere()
        else:
            self._host.report_taken(self._given[0].attempt)  # it is still claiming its gate
            self._since = time.monotonic()

    def _begin_elsewhere(self) -> None:
        """End a process that has not won the gate, and perform its order in another one."""
        assert self._process is not None
        self._process.kill()
        if self._process.has_begun or _is_ours(self._given[0]):  # it may have died before it could count
            self._watch(None)
            return
        errors = self._process.read_errors()
        self.dismiss()
        order = self._given.pop(0)
        order.tries += 1
        if order.tries < _MOST_TRIES and not self._host.signals.terms:
            self._waiting.insert(0, order)
        else:
            self._host.over(order, b"", why=errors)

    def _watch(self, reply: SharedReply | None) -> None:
        """Supervise the current call to its end."""
        assert self._process is not None
        order, process = self._given[0], self._process
        secret = token_hash(order.request["token"])
        objects, spec = read_spec(*_where(order, secret))
        job = SharedJob(objects, order.request["attempt"], process, reply)
        self._is_watched = True
        began = self._began_at() if reply is None else reply.began_at()
        shim = SharedShim(objects, spec, Signer(secret), self._host, job, self._since, began)
        shim.before_beat = self._write_again
        self._host.have(order, lambda _: None if shim.run() else self._host.leave())
        self._is_watched = False
        self._send_imports()
        self._given.pop(0)
        self._host.over(order, b"")
        if not job.is_over or process.is_gone:
            self._process = None
            process.close()
        elif job.waits:
            process.go_on()
        self._since = time.monotonic()

    def _began_at(self) -> str:
        """When the current call began, as far as known."""
        return utc_text(time.time_ns() - int((time.monotonic() - self._since) * 1e9))


def _is_ours(order: Order) -> bool:
    """True if this worker has certainly won the gate."""
    secret = token_hash(order.request["token"])
    try:
        objects, _ = read_spec(*_where(order, secret))
        (found,) = objects.read_gates([order.request["attempt"]])
        data = found if isinstance(found, bytes) else None
        return data is not None and open_signed(data, secret).get("pid") == os.getpid()
    except ObjectsError:
        return False


def _where(order: Order, secret: str) -> tuple[str, str, str, int, bytes]:
    request = order.request
    return request["objects"], request["attempt"], secret, request["position"], order.document

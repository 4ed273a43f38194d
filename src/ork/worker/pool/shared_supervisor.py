"""Supervises the attempts of a shared process (`isolation: shared`) in its worker.

The process (`shared_process`) has several orders queued and replies in their order. For a call that leaves nothing behind there
is nothing to do here but to write its status. Any other call (it prints, takes long, fails, is stopped or dies) is supervised by
a shim like every attempt. Queued orders wait in a socket of which both ends are open here: each is taken out by exactly one side,
so that the worker can take back all but the one that the process is at.
"""

from __future__ import annotations

import os
import time

from ork.errors import ObjectsError
from ork.objects.documents import Signer, open_signed, token_hash, utc_text
from ork.worker.call.storing import PATIENCE_SECONDS
from ork.worker.pool.shared_process import ALONE, ENDS, LAST, NOTHING, UNFIT, WAITS
from ork.worker.pool.shared_process_handle import SharedJob, SharedProcessHandle, SharedReply
from ork.worker.supervise.claim import opened, read_spec
from ork.worker.supervise.shim import Shim
from ork.worker.system import processes
from ork.worker.system.attempt_tag import SEVERAL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ork.objects.attempt_documents import AttemptDocuments
    from ork.worker.pool.reusable_worker import Order, ReusableWorker

FIRST_LOOK_SECONDS = 0.05
TOGETHER_SECONDS = 0.002  # answers that come so soon after each other are told of together
LOOK_AGAIN_SECONDS = 1.0
WRITE_AGAIN_SECONDS = 1.0
_MOST_TRIES = 3  # with one order: more processes that die before they begin are not made for it
_MOST_GIVEN = 64  # more than the quickest are done with before answers are looked at again


class Unwritten:
    """The end of an attempt that could not be written, for example because the disk is full."""

    def __init__(self, objects: AttemptDocuments, order: Order, answer: SharedReply, terms: int) -> None:
        self.objects, self.order, self.answer = objects, order, answer
        self.is_written = False
        self.terms = terms  # requests to go that had come by then
        self.give_up_at = time.monotonic() + PATIENCE_SECONDS


class SharedShim(Shim):
    """Watches one attempt of a shared process, and tries to write what others of it have left unwritten."""

    before_beat: Callable[[], None]

    def _beat(self, now: float, heard_at: float) -> tuple[float, float]:
        self.before_beat()
        return super()._beat(now, heard_at)


class SharedSupervisor:
    """`waiting` are the host's orders to come; those given to the process are taken from it, and may come back."""

    def __init__(self, host: ReusableWorker, waiting: list[Order]) -> None:
        self._host = host
        self._waiting = waiting
        self._given: list[Order] = []
        self._unwritten: list[Unwritten] = []  # ends that could not be written: nothing is begun until they are
        self._written: list[Unwritten] = []  # and were written, or given up, since then: to be told
        self._write_again_at = 0.0
        self._process: SharedProcessHandle | None = None
        self._since = 0.0  # the first of those given is under way at the latest
        self._is_watched = False  # by a shim of its own
        self._is_stopping = False  # one of them: nothing is begun meanwhile
        self._are_more_to_come = False  # answers, in a moment
        self._looked_at = time.monotonic()
        processes.become_subreaper()  # what a function leaves behind is to be ours

    def work(self) -> None:
        """Performs what waits, until that is nothing or nothing for a shared process."""
        while True:
            self._give()
            self._host.say_all()
            if self._given:
                self._wait()
            elif self._unwritten:
                time.sleep(max(0.0, self._write_again_at - time.monotonic()))
            else:
                self._host.tag.write(b"")
                return
            self._write_again()
            self._tell_written()

    def dismiss(self) -> None:
        """The process is not needed for now."""
        process, self._process = self._process, None
        if process is not None:
            process.dismiss()

    def take_back(self) -> list[bytes]:
        """Nothing is begun but what the process has by now; which attempts those are."""
        attempts = self._process.take_back() if self._process is not None else ()
        for order in [order for order in reversed(self._given) if order.attempt in attempts]:
            self._given.remove(order)
            self._waiting.insert(0, order)
        ended = [end.order.attempt for end in (*self._written, *self._unwritten)]
        return [*ended, *(order.attempt for order in self._given)]

    def give_up(self) -> Order | None:
        """After a mistake of ours: nothing goes on with nobody to look after it. What was under way."""
        first: Order | None = self._given[0] if self._given else None
        self.take_back()
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.close()
        return first

    @property
    def is_at_work(self) -> bool:
        return bool(self._given or self._unwritten)

    def stop(self, attempt: bytes) -> bool:
        """Whether this attempt is under way. One that is not will not be."""
        if not self._is_watched:
            self.take_back()
            self._is_stopping = True
            self._hear()
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
        """Looked at now and then: what this worker has loaded may change while it is busy."""
        now = time.monotonic()
        if now - self._looked_at > LOOK_AGAIN_SECONDS:
            self._looked_at = now
            if not self._host.is_fresh():
                self._host.leave()
        return self._host.room > 0

    def _wait(self) -> None:
        """For an answer, a word from outside, or a reason to look more closely."""
        assert self._process is not None
        host, process = self._host, self._process
        door = host.descriptor if host.is_open else -1
        ready = set()
        if self._are_more_to_come:
            ready = process.wait(door, host.signals.wake, TOGETHER_SECONDS, for_answers=False)
        if not ready:
            pause = max(0.0, self._since + FIRST_LOOK_SECONDS - time.monotonic())
            ready = process.wait(door, host.signals.wake, pause)
        if host.signals.wake in ready:
            host.signals.quiet()
        if host.descriptor in ready:
            host.look()
        has_answered = self._hear()
        self._are_more_to_come = has_answered and bool(self._given)
        is_hurried = host.signals.terms or not host.is_open or self._unwritten
        if process.printed in ready or process.is_gone or is_hurried or not (ready or has_answered):
            self._look_closely()

    def _hear(self) -> bool:
        """Takes in what the process has answered; whether there was anything."""
        answers = self._process.read_answers() if self._process is not None else []
        if answers:
            self._since = time.monotonic()
        ends: list[tuple[Order, SharedReply]] = []
        try:
            for answer in answers:
                if not self._given or self._given[0].attempt != answer.attempt:
                    raise RuntimeError(f"an answer for {answer.attempt!r}, which nobody asked for")
                if answer.word in ENDS:
                    ends.append((self._given.pop(0), answer))
                else:
                    self._write(ends)
                    self._answered(self._given[0], answer)
        finally:
            self._write(ends)
        return bool(answers)

    def _answered(self, order: Order, answer: SharedReply) -> None:
        """It is not simply over."""
        if answer.word in (WAITS, LAST):
            self.take_back()
            self._watch(answer)
            return
        self._given.pop(0)
        if answer.word == NOTHING:
            self._host.over(order, b"", why=answer.document.decode("utf-8", "replace"))
        else:
            self.take_back()
            self.dismiss()
            if answer.word == ALONE and not self._is_stopping:
                self._host.perform_alone(order)
            else:
                assert answer.word in (ALONE, UNFIT)
                self._waiting.insert(0, order)

    def _write(self, ends: list[tuple[Order, SharedReply]]) -> None:
        """Their last words, together if that can be, and tells of them. Empties the list."""
        by_place: dict[AttemptDocuments, list[tuple[Order, SharedReply]]] = {}
        for order, answer in ends:
            objects = opened(order.request["objects"], answer.durability.decode())
            by_place.setdefault(objects, []).append((order, answer))
        ends.clear()
        for objects, group in by_place.items():
            try:
                objects.put_first_statuses([(order.request["attempt"], answer.document) for order, answer in group])
            except ObjectsError:
                terms = self._host.signals.terms
                self._unwritten += [Unwritten(objects, order, answer, terms) for order, answer in group]
                self.take_back()  # what the process is at by now is watched, and fenced, like any attempt
                continue
            for order, answer in group:
                self._host.over(order, answer.document, word=ENDS[answer.word])

    def _write_again(self) -> None:
        """Try again to write the ends that could not be written. Given up on after a while, or when asked to go."""
        now = time.monotonic()
        if not self._unwritten or now < self._write_again_at:
            return
        ends, self._unwritten, self._write_again_at = self._unwritten, [], now + WRITE_AGAIN_SECONDS
        for end in ends:
            try:
                end.objects.put_status(end.order.request["attempt"], end.answer.document)
                end.is_written = True
            except ObjectsError:
                if now < end.give_up_at and self._host.signals.terms <= end.terms:
                    self._unwritten.append(end)
                    continue
            self._written.append(end)

    def _tell_written(self) -> None:
        """Not while an attempt is watched: the host tells of one at a time."""
        for end in self._written:
            if not end.is_written:
                self.take_back()
                self._host.leave()
            self._host.over(end.order, end.answer.document if end.is_written else b"", word=ENDS[end.answer.word])
        self._written.clear()

    def _look_closely(self) -> None:
        """The first of those given takes its time, or has something to say, or is to be stopped, or has died."""
        self.take_back()
        self._hear()
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
            self._host.tell_taken(self._given[0].attempt)  # it waits for its gate
            self._since = time.monotonic()

    def _begin_elsewhere(self) -> None:
        """The process ends, or has ended, before it won the gate; now it never will."""
        assert self._process is not None
        self._process.kill()
        if self._process.has_begun or _is_ours(self._given[0]):  # it may have died before it could count
            self._watch(None)
            return
        troubles = self._process.hear_troubles()
        self.dismiss()
        order = self._given.pop(0)
        order.tries += 1
        if order.tries < _MOST_TRIES and not self._host.signals.terms:
            self._waiting.insert(0, order)
        else:
            self._host.over(order, b"", why=troubles)

    def _watch(self, reply: SharedReply | None) -> None:
        """As any other attempt, from now on."""
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
        self._given.pop(0)
        self._host.over(order, b"")
        if not job.is_over or process.is_gone:
            self._process = None
            process.close()
        elif job.waits:
            process.go_on()
        self._since = time.monotonic()

    def _began_at(self) -> str:
        """The first of those given, as far as is known."""
        return utc_text(time.time_ns() - int((time.monotonic() - self._since) * 1e9))


def _is_ours(order: Order) -> bool:
    """Whether this worker has won its gate, as far as that can be read."""
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

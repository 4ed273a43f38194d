"""Attempts that share a process (`isolation: shared`), seen from the worker that has them.

The process (`ork.worker.shared`) has several orders at hand and answers in their order; for one that leaves nothing
behind there is nothing to do here but to write down its end. Anything else is an ordinary matter between a shim and one
attempt: one that prints, takes its time, fails, is stopped or dies. Orders that were not begun wait in a socket of which
both ends are open here: whoever takes one out has it, so that the process can be left with the one that it is at.
"""

from __future__ import annotations

import os
import select
import time
from _collections import deque  # type: ignore[import-not-found]
from _socket import AF_UNIX, MSG_DONTWAIT, SOCK_SEQPACKET, socketpair
from mmap import mmap

from ork.errors import ObjectsError
from ork.objects import layout
from ork.objects.documents import DOCUMENT_LIMIT, token_hash
from ork.objects.json_text import strict_json
from ork.worker import system
from ork.worker.main import opened, read_spec
from ork.worker.mark import SEVERAL
from ork.worker.process import ended_without_reply, fork_into
from ork.worker.pump import Stream
from ork.worker.shared import ALONE, COUNT_BYTES, DONE, LARGEST_ORDER, LAST, NOTHING, UNFIT, WAITS, Server
from ork.worker.shim import Shim
from ork.worker.status import Ending, put_patiently

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from ork.objects.local import LocalObjects
    from ork.worker.log import Log
    from ork.worker.resident import Order, Resident

FIRST_LOOK_SECONDS = 0.05
TOGETHER_SECONDS = 0.001  # answers that come so soon after each other are told of together
_MOST_TRIES = 3  # with one order: more processes that die before they begin are not made for it
_MOST_GIVEN = 32
_CHUNK = 1 << 16
_SIGKILL = 9


class Sharing:
    """`waiting` are the host's orders to come; those given to the process are taken from it, and may come back."""

    def __init__(self, host: Resident, waiting: deque[Order]) -> None:
        self._host = host
        self._waiting = waiting
        self._given: deque[Order] = deque()
        self._process: FunctionProcess | None = None
        self._since = 0.0  # the first of those given is under way at the latest
        self._is_watched = False  # by a shim of its own
        self._are_more_to_come = False  # answers, in a moment
        system.become_subreaper()  # what a function leaves behind is to be ours

    def work(self) -> None:
        """Performs what waits, until that is nothing or nothing for a shared process."""
        while True:
            self._give()
            self._host.say_all()
            if not self._given:
                self._host.mark.write("")
                return
            self._wait()

    def dismiss(self) -> None:
        """The process is not needed for now."""
        process, self._process = self._process, None
        if process is not None:
            process.dismiss()

    def take_back(self) -> list[bytes]:
        """Nothing is begun but what the process has by now; which attempts those are."""
        heads = self._process.take_back() if self._process is not None else ()
        for order in [order for order in reversed(self._given) if order.head in heads]:
            self._given.remove(order)
            self._waiting.appendleft(order)
        return [order.attempt for order in self._given]

    @property
    def log(self) -> str:
        """Of the attempt that is under way, or would have been next."""
        first: Order = (*self._given, *self._waiting)[0]
        return first.log

    @property
    def is_at_work(self) -> bool:
        return bool(self._given)

    def stop(self, attempt: bytes) -> bool:
        """Whether this attempt is under way. One that is not will not be."""
        if not self._is_watched:
            self.take_back()
            self._hear()
        if not self._given and self._waiting and self._waiting[0].attempt == attempt:
            self._host.over(self._waiting.popleft(), b"")
        return bool(self._given) and self._given[0].attempt == attempt

    def _give(self) -> None:
        room = 0 if self._host.signals.terms else min(_MOST_GIVEN, self._host.room)
        while self._waiting and self._waiting[0].request["isolation"] == "shared" and len(self._given) < room:
            if not self._given:
                self._host.mark.write(SEVERAL)
            if self._process is None:
                self._process = FunctionProcess(self._host)
            if not self._process.give(self._waiting[0]):
                return
            self._given.append(self._waiting.popleft())
            if len(self._given) == 1:
                self._since = time.monotonic()

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
        is_hurried = host.signals.terms or not host.is_open
        if process.printed in ready or process.is_gone or is_hurried or not (ready or has_answered):
            self._look_closely()

    def _hear(self) -> bool:
        """Takes in what the process has answered; whether there was anything."""
        lines = self._process.read_answers() if self._process is not None else []
        for line in lines:
            self._since = time.monotonic()
            word, _, facts = line.partition(b" ")
            self._answered(self._given.popleft(), word, facts)
        return bool(lines)

    def _answered(self, order: Order, word: bytes, facts: bytes) -> None:
        if word == DONE:
            self._write(order, *facts.split(b" ", 1))
        elif word == NOTHING:
            self._host.over(order, b"", why=facts.decode("utf-8", "replace"))
        elif word in (WAITS, LAST):
            self.take_back()
            self._given.appendleft(order)
            self._watch((word, facts.split(b" ", 1)[1]))
        else:
            self.take_back()
            self.dismiss()
            if word == ALONE:
                self._host.perform_alone(order)
            else:
                assert word == UNFIT
                self._waiting.appendleft(order)

    def _write(self, order: Order, durability: bytes, document: bytes) -> None:
        objects = opened(order.request["objects"], durability.decode())
        key, signals = layout.status_key(layout.stem_of(order.request["spec"])), self._host.signals
        try:
            objects.put_first(key, document)
        except ObjectsError:
            terms = signals.terms
            if not put_patiently(objects, key, document, lambda: signals.terms > terms):
                document = b""
                self._host.leave()
        self._host.over(order, document)

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
            self._host.tell_taken()  # it waits for its gate
            self._process.hear_troubles()
            self._since = time.monotonic()

    def _begin_elsewhere(self) -> None:
        """The process ends, or has ended, before it won the gate; now it never will."""
        assert self._process is not None
        self._process.kill()
        if self._process.has_begun:
            self._watch(None)
            return
        troubles = self._process.hear_troubles()
        self.dismiss()
        order = self._given.popleft()
        order.tries += 1
        if order.tries < _MOST_TRIES and not self._host.signals.terms:
            self._waiting.appendleft(order)
        else:
            self._host.over(order, b"", why=troubles)

    def _watch(self, reply: tuple[bytes, bytes] | None) -> None:
        """As any other attempt, from now on."""
        assert self._process is not None
        order, process = self._given[0], self._process
        secret = token_hash(order.request["token"])
        objects, spec = read_spec(*_where(order, secret))
        stem = layout.stem_of(order.request["spec"])
        job = SharedJob(objects, stem, process, reply)
        self._is_watched = True
        shim = Shim(objects, stem, spec, secret, self._host, job, self._since)
        self._host.have(order, lambda: None if shim.run() else self._host.leave())
        self._is_watched = False
        self._given.popleft()
        self._host.over(order, b"")
        if job.is_over:
            process.go_on(is_waiting=job.waits)
        else:
            self._process = None
            process.close()
        self._since = time.monotonic()


def _where(order: Order, secret: str) -> tuple[str, str, str, int, bytes]:
    request = order.request
    return request["objects"], request["spec"], secret, request["position"], order.document


class FunctionProcess:
    """The process itself, with its pipes. OSError if none can be made."""

    def __init__(self, host: Resident) -> None:
        self._orders, theirs = socketpair(AF_UNIX, SOCK_SEQPACKET)
        self._theirs = theirs
        self.answers, answer = os.pipe()
        self.printed, speak = os.pipe()
        go, self._go = os.pipe()
        self.is_gone = False
        self._heard = self._troubles = b""
        self._begun, self._ended = mmap(-1, COUNT_BYTES), 0  # how many calls: the process counts there

        def begin() -> NoReturn:
            for descriptor in (self._orders.detach(), self.answers, self.printed, self._go):
                os.close(descriptor)
            os.dup2(speak, 1)
            os.dup2(speak, 2)
            os.close(speak)
            Server(theirs, answer, go, self._begun, host.mark, host.process).serve()

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
        """False if there is no room for now."""
        try:
            self._orders.send(b"%b\n%b" % (order.head, order.document), MSG_DONTWAIT)
        except BlockingIOError:
            return False
        return True

    def take_back(self) -> set[bytes]:
        """The heads of those that it will not get: while we take the next, it may take the one after that."""
        heads = set()
        try:
            while order := self._theirs.recv(LARGEST_ORDER, MSG_DONTWAIT):
                heads.add(order.partition(b"\n")[0])
        except BlockingIOError:
            pass
        return heads

    def wait(self, door: int, wake: int, seconds: float, *, for_answers: bool = True) -> set[int]:
        """Which of them, and of its own descriptors, have something to read."""
        poller = select.poll()
        for descriptor in (door, wake, self.printed, self.answers if for_answers else -1):
            if descriptor >= 0:
                poller.register(descriptor, select.POLLIN)
        return {descriptor for descriptor, _ in poller.poll(int(seconds * 1000 + 0.999))}

    def read_answers(self) -> list[bytes]:
        """Whole lines."""
        try:
            chunk = os.read(self.answers, _CHUNK)
            self.is_gone = self.is_gone or not chunk
        except BlockingIOError:
            return []
        *lines, self._heard = (self._heard + chunk).split(b"\n")
        self._ended += sum(line.startswith((DONE, WAITS, LAST)) for line in lines)
        return lines

    @property
    def has_begun(self) -> bool:
        """Whether it has won a gate and not yet answered how that ended."""
        return int.from_bytes(self._begun[:COUNT_BYTES], "little") > self._ended

    def hear_troubles(self) -> str:
        """What it printed before it began with anything."""
        while self.printed in self.wait(-1, -1, 0.0) and (chunk := os.read(self.printed, _CHUNK)):
            self._troubles += chunk
        return self._troubles.decode("utf-8", "replace")

    def go_on(self, *, is_waiting: bool) -> None:
        if is_waiting:
            os.write(self._go, b".")

    def kill(self) -> None:
        """And waits until it is gone."""
        os.kill(self.pid, _SIGKILL)
        os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)  # whoever looks after it will want to know

    def dismiss(self) -> None:
        """It ends by itself, having been given nothing, or has ended."""
        self.close()
        os.waitpid(self.pid, 0)

    def close(self) -> None:
        self._orders.close()
        self._theirs.close()
        for descriptor in (self.answers, self.printed, self._go):
            os.close(descriptor)
        self._begun.close()


class SharedJob:
    """One call in a process that does more of them, with its reply if that is there already."""

    forker, main_status, is_swift, is_started = 0, None, False, True

    def __init__(
        self, objects: LocalObjects, stem: str, process: FunctionProcess, reply: tuple[bytes, bytes] | None
    ) -> None:
        self._objects = objects
        self._stem = stem
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
        return self._reply is not None and self._reply[0] in (DONE, WAITS)

    @property
    def leaves_nothing(self) -> bool:
        return self._reply is not None and self._reply[0] == DONE

    @property
    def waits(self) -> bool:
        return self._reply is not None and self._reply[0] == WAITS

    def ending(self, wait_status: int) -> Ending:
        if self._reply is None:
            return ended_without_reply(wait_status, self._objects, self._stem, self._log)
        said = strict_json(self._reply[1], max_size=DOCUMENT_LIMIT)
        details = {name: said.get(name) for name in ("exit_code", "failure", "output", "metrics", "jobs")}
        return Ending(said["state"], **details)

    def clean(self) -> None:
        """The process is for whoever comes next."""

    def _read_reply(self) -> bool:
        for line in self._process.read_answers():
            word, _, facts = line.partition(b" ")
            self._reply = word, facts.split(b" ", 1)[1]
        return not self._process.is_gone

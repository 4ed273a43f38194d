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
from ork.worker.call.imports_ahead import Ahead
from ork.worker.pool.guard import Guard
from ork.worker.pool.task_fork_server import TaskForkServer
from ork.worker.supervise import process
from ork.worker.supervise.child import dismiss_waiting, keep, waiting
from ork.worker.supervise.claim import in_words, opened, read_spec, win_gate
from ork.worker.supervise.confinement import is_confined
from ork.worker.supervise.shim import Shim
from ork.worker.system import processes
from ork.worker.system.processes import Signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ork.worker.call.packages import PackageFingerprint
    from ork.worker.pool.shared_supervisor import SharedSupervisor
    from ork.worker.system.attempt_tag import AttemptTag

IDLE_SECONDS = 60.0
LARGEST_MESSAGE = 1 << 16
LARGEST_WORD = 1 << 15
MOST_ATTEMPTS = 10_000  # whatever a long life would gather does not become much
_STOP = b"stop "
_BACK = b"back"


class Order:
    """An attempt to perform, as it was asked for; `document` is its spec, if that is at hand."""

    __slots__ = ("attempt", "document", "request", "tries")

    def __init__(self, head: bytes, document: bytes) -> None:
        self.document = document
        self.request: dict[str, Any] = own_json(head)
        self.attempt = str(self.request["attempt"]).encode()
        self.tries = 0

    def for_process(self) -> tuple[bytes, str, str, str, int, bytes]:
        """What a shared process must know."""
        request = self.request
        return (
            self.attempt,
            request["token"],
            request["objects"],
            request["attempt"],
            request["position"],
            self.document,
        )

    def complain(self, why: str) -> None:
        """Adds a line to the attempt's log, if that can be: something went wrong before its task has begun."""
        try:
            line = f"ork-worker: {why}\n".encode("utf-8", "replace")
            opened(self.request["objects"], "normal").append_log(self.request["attempt"], line)
        except ObjectsError:
            return


class ReusableWorker:
    def __init__(self, door: int, tag: AttemptTag, fingerprint: PackageFingerprint | None) -> None:
        self.descriptor = door
        self.tag = tag
        self._fingerprint = fingerprint
        self.signals = Signals()
        self.process = processes.own_process()
        self.in_words = in_words(self.process)
        self._attempt = b""
        # The one that was made before the server had loaded anything would load it again for every attempt.
        self._room = 1 if fingerprint is None else MOST_ATTEMPTS
        self.is_open = True
        self._called: tuple[str, list[str], str | None, str] | None = None  # project, file and where the documents are
        self._guard: Guard | None = None
        self._ahead: Ahead | None = None
        self._loud: set[str] = set()  # projects in which importing ahead started threads, or opened sockets
        self._last_word = b""
        self._words: list[bytes] = []  # to be said together
        self._waiting: list[Order] = []  # what is to come next
        self._sharing: SharedSupervisor | None = None
        self._is_known = self._has_told = False
        self._is_swift = False  # the last task never waited for anything
        self._poller = select.poll()
        self._poller.register(door, select.POLLIN)
        self._poller.register(self.signals.wake, select.POLLIN)
        process.private.update((door, self.signals.wake, self.signals.ring))

    def serve(self) -> int:
        """Takes one attempt after the other, until there will be no more."""
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
        """Whether what is started from now on ends with this process, however that ends."""
        if self._guard is None and self._fingerprint is not None:  # else it does not stay: it would not be worth it
            try:
                self._guard = Guard(self.tag)
            except OSError:
                return False
        return self._guard is not None

    def learn(self, spec: dict[str, Any], imports: dict[str, Any] | None, *, is_quiet: bool) -> None:
        root, paths = spec["root"], spec["paths"]
        if not is_quiet:
            self._loud.add(root)
            self._ahead = None
        elif imports is not None and root not in self._loud:
            before = self._ahead_in(root, paths) or Ahead(root, paths, [], {})
            names = dict.fromkeys([*before.names, *imports["names"]])
            self._ahead = Ahead(root, paths, list(names), {**before.files, **imports["files"]})

    def _ahead_in(self, root: str, paths: list[str]) -> Ahead | None:
        ahead = self._ahead
        return ahead if ahead is not None and (ahead.root, ahead.paths) == (root, paths) else None

    def look(self) -> bool:
        """A request to stop what is going on, the next attempt, or the end of whoever could ask for any of it."""
        message = self._read()
        if message.startswith(_STOP):
            self.signals.terms += self._has(message[len(_STOP) :])
        elif message == _BACK:
            begun = self._sharing.take_back() if self._sharing is not None else []
            self._waiting.clear()
            self._say(_BACK, b"", b"\t".join(begun or [self._attempt]))
        else:
            self._waiting.extend(_orders(message))
        if not self.is_open:
            if self._sharing is not None:
                self._sharing.take_back()
            self._waiting.clear()  # whoever comes next will have them begun
        return self.is_open

    def _has(self, attempt: bytes) -> bool:
        if self._sharing is not None and self._sharing.is_at_work:
            return self._sharing.stop(attempt)
        return attempt == self._attempt

    def _has_next(self) -> bool:
        """Waits for a request; False when there will be none."""
        while self.is_open and not self.signals.terms:
            if self._waiting:
                return True
            ready = [descriptor for descriptor, _ in self._poller.poll(IDLE_SECONDS * 1000)]
            if not ready:
                return False
            if self.signals.wake in ready:
                self.signals.quiet()
            if self.descriptor in ready:
                # One that is out of date leaves the request to others.
                if not self.is_fresh():
                    return False
                self.look()
        return False

    def _share(self) -> None:
        """For a while one process after the other, with many attempts each."""
        if self._sharing is None:
            from ork.worker.pool.shared_supervisor import SharedSupervisor

            self._sharing = SharedSupervisor(self, self._waiting)
        dismiss_waiting()
        self._tell_of_us(self._waiting[0].attempt)
        try:
            self._sharing.work()
        except Exception:
            self._fail(self._sharing.give_up())

    def _take(self, order: Order) -> None:
        """Performs the attempt, unless another worker has it."""
        if self._sharing is not None:
            self._sharing.dismiss()  # whatever is below us belongs to the attempt
        self._room = max(0, self._room - 1)
        self.have(order, self._perform)
        if self._room:
            self._say(b"swift" if self._is_swift else b"over", order.attempt, self._last_word)  # and the next may come
            if self.is_open and self._called is not None and order.request["isolation"] != "shared":
                self._make_next(*self._called)

    def have(self, order: Order, perform: Callable[[Order], None]) -> None:
        """An attempt, to the end; a mistake of ours is told in its log."""
        self._attempt = order.attempt
        self.tag.write(order.attempt)
        self._last_word, self._has_told, self._is_swift = b"", False, False
        if not self._is_known:
            self._tell_of_us(order.attempt)
        try:
            perform(order)
        except Exception:
            self._fail(order)
        self.tag.write(b"")
        self._attempt = b""

    def _tell_of_us(self, attempt: bytes) -> None:
        """So that it is known that workers come alive here."""
        if not self._is_known:
            self.tell_taken(attempt)

    def _fail(self, order: Order | None) -> None:
        import traceback

        if order is not None:
            order.complain(traceback.format_exc())
        self._room = 0

    def _perform(self, order: Order) -> None:
        request = order.request
        secret = token_hash(request["token"])
        try:
            objects, spec = read_spec(
                request["objects"], request["attempt"], secret, request["position"], order.document
            )
            signer = Signer(secret)
            is_ours = win_gate(objects, spec["attempt"], signer, self.in_words, self._tell_mine_taken)
        except ObjectsError as error:
            order.complain(error.message)
            is_ours = False
        if not is_ours:
            return
        if spec.get("environment") is not None or spec["kind"] == "rust":
            self._room = 0  # what was built for a task stays locked as long as its worker lives
        # So the next one will call a function of that project too, most likely.
        is_function = spec["kind"] == "python" and not is_confined(spec)
        self._called = (spec["root"], spec["paths"], spec["file"], objects.url) if is_function else None
        is_alone = request["isolation"] != "shared"
        if self._called is not None and waiting() is None and self._fingerprint is not None and is_alone:
            self._make_next(*self._called)  # before more of our memory is in use, which a fork makes dear
        shim = Shim(objects, spec, signer, self)
        if not shim.run():
            self._room = 0
        self._is_swift = shim.is_swift

    def _make_next(self, root: str, paths: list[str], file: str | None, objects: str) -> None:
        """The next function finds its process waiting. Where there can be none, it does without."""
        there = waiting()
        ahead = self._ahead_in(root, paths)
        if not isinstance(there, TaskForkServer) or (there.root, there.paths, there.ahead) != (root, paths, ahead):
            dismiss_waiting()
            try:
                there = TaskForkServer(self.tag, root, ahead, objects, paths)
            except OSError:
                return
            keep(there)
        there.make_next(file)

    def tell(self, is_over: bool, document: bytes) -> None:
        if is_over and self._room:
            self._last_word = document  # to be said when all is tidied up
        else:
            self._tell_mine_taken()
            self._say(b"news", self._attempt, document)

    def _tell_mine_taken(self) -> None:
        self.tell_taken(self._attempt)

    def tell_taken(self, attempt: bytes) -> None:
        """Not of what is over in a moment: each word wakes the scheduler."""
        if not self._has_told:
            self._has_told = self._is_known = True
            self._say(b"took", attempt, f"{self.process['pid']} {self.process['start_time'] or 0}".encode())

    def _read(self) -> bytes:
        try:
            message = os.read(self.descriptor, LARGEST_MESSAGE)
        except ConnectionResetError:
            return b""  # the executor left before it read our last words; its own last ones are still to come
        except OSError:
            message = b""
        self.is_open = bool(message)
        return message

    # ── for those that share a process ───────────────────────────────────────────────────────────

    @property
    def room(self) -> int:
        """How many more attempts it takes."""
        return self._room

    def over(self, order: Order, document: bytes, why: str = "", *, word: bytes = b"over") -> None:
        """It is done with one of them, as that has said itself if not said here; or has nothing to do with it, for a reason
        to be told in its log. `word`: how it is told."""
        if why:
            order.complain(why)
        self._room = max(0, self._room - 1)
        if not self._room:
            self.tell_taken(order.attempt)  # our end says that it is over
        self._words.append(_word(word if self._room else b"news", order.attempt, document or self._last_word))
        self._has_told, self._last_word = False, b""

    def perform_alone(self, order: Order) -> None:
        self.say_all()
        self._take(order)

    def is_fresh(self) -> bool:
        """Whether what it has loaded is what is there: the task before may have installed something for the next."""
        return self._fingerprint is None or self._fingerprint.is_current()

    def leave(self) -> None:
        """It takes nothing more."""
        self._room = 0

    def say_all(self) -> None:
        while self._words:
            size = many = 0
            for word in self._words:
                size += len(word) + 1
                if many and size > LARGEST_MESSAGE:
                    break
                many += 1
            self._send(b"\n".join(self._words[:many]))
            del self._words[:many]

    def _say(self, word: bytes, attempt: bytes, facts: bytes) -> None:
        if self._words:
            self.say_all()
        self._send(_word(word, attempt, facts))

    def _send(self, message: bytes) -> None:
        try:
            os.write(self.descriptor, message)
        except OSError:
            return  # the executor is gone, and its successor finds the attempt by its gate


def _word(word: bytes, attempt: bytes, facts: bytes) -> bytes:
    return b"%b\t%b\t%b" % (word, attempt, facts if len(facts) <= LARGEST_WORD else b"")


def _orders(message: bytes) -> list[Order]:
    """Two lines each: the request, and its spec if that is at hand."""
    lines = message.split(b"\n")
    return [Order(*lines) for lines in zip(lines[::2], lines[1::2], strict=False)]

"""The shared process: calls one function after the other (`isolation: shared`), with no isolation between them.

It ends as soon as something may be left behind that could affect the next call: after a failure, with a thread or a process still
running, or when code has changed on the disk. Another process replaces it. Orders are queued in a socket, so that the process
never waits for the next one (see `shared_supervisor`).
"""

from __future__ import annotations

import marshal
import os
import sys
import time
from _socket import MSG_DONTWAIT

from ork.errors import ObjectsError
from ork.objects.documents import Signer, token_hash, utc_text
from ork.worker.call.environment import additions, hidden_names, inherited
from ork.worker.call.invoke import Call
from ork.worker.call.loading import load_function, time_of
from ork.worker.call.seen_imports import imports_report
from ork.worker.call.surroundings import (
    enter_folder,
    finish_as_the_interpreter_would,
    flush_streams,
    reseed,
    use_packages,
    use_streams,
)
from ork.worker.pool.leak_check import Effort, LeakCheck, Starts
from ork.worker.supervise.claim import forget_opened, read_spec, win_gate
from ork.worker.supervise.process import is_confined
from ork.worker.supervise.status import only_status, returned
from ork.worker.system.processes import Waits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from collections.abc import Callable
    from mmap import mmap
    from typing import Any, NoReturn

    from ork.objects.attempt_documents import AttemptDocuments
    from ork.worker.call.environment import Bindings
    from ork.worker.system.processes import AttemptTag

MOST_CALLS = 10_000
LOOK_AGAIN_SECONDS = 0.002  # between checks of its files, while tasks are queued
LARGEST_ORDER = 1 << 17
COUNT_BYTES = 8
_ENVIRON, _ENVIRON_OF_BYTES = os.environ, os.environb

# Replies, in the order of the orders. Each is a line: a word, the attempt, the durability and a document.
DONE = b"done"  # the call has ended and left nothing behind
SWIFT = b"swift"  # the same, and it never waited for anything
LIGHT = b"light"  # the same, and such tasks cost so little that one process keeps up with the scheduler
WAITS = b"waits"  # it has ended, but may have left something: no other call begins until the worker has checked
LAST = b"last"  # it has ended, and this process ends, too
NOTHING = b"nothing"  # there was nothing to do, for the reason that follows, if any
ALONE = b"alone"  # it needs a process of its own; no other call begins here
ENDS = {DONE: b"over", SWIFT: b"swift", LIGHT: b"light"}  # with the words by which the worker reports them
IMPORTS = b"imports"  # modules that it has imported, as JSON; the reply is still to come
UNFIT = b"unfit"  # it needs another shared process; this one ends


class SharedProcess:
    """`orders` is a socket, `answers` and `go` are pipes. `begun` is shared memory with the number of gates won, which the worker can
    read even if no document can be read any more. `process` names the worker in gates."""

    def __init__(self, orders: socket, answers: int, go: int, begun: mmap, tag: AttemptTag, process: str) -> None:
        self._orders = orders
        self._order = memoryview(bytearray(LARGEST_ORDER))  # allocated once: that takes longer than most calls
        self._answers = answers
        self._go = go
        self._begun = begun
        self._tag = tag
        self._process = process
        self._calls = 0
        self._pid = os.getpid()
        self._attempt = b""  # the current one
        self._leaks = LeakCheck()
        self._state = _SharedState(self._leaks)
        self._starts = Starts()
        self._waits = Waits()
        self._effort = Effort()

    def serve(self) -> NoReturn:
        """Call until there are no more orders, or until this process should not take another. Ends the process."""
        forget_opened()
        use_streams()
        reseed()
        while order := self._next():
            self._perform(*marshal.loads(order))
        finish_as_the_interpreter_would()
        os._exit(0)

    def _next(self) -> memoryview:
        try:
            size = self._orders.recv_into(self._order, 0, MSG_DONTWAIT)
        except BlockingIOError:
            self._tag.write(b"")  # while it waits, it belongs to no attempt
            size = self._orders.recv_into(self._order)
            self._state.has_waited()
            self._waits.forget()
        return self._order[:size]

    def _perform(self, attempt: bytes, token: str, objects_url: str, name: str, position: int, document: bytes) -> None:
        self._attempt = attempt
        secret = token_hash(token)
        self._tag.write(attempt)
        try:
            objects, spec = read_spec(objects_url, name, secret, position, document)
            if (
                spec["kind"] != "python"
                or spec.get("environment") is not None
                or spec.get("wake_url")
                or is_confined(spec)
            ):
                self._answer(ALONE)
                self._wait_for_go()
            elif self._calls >= MOST_CALLS or not self._state.is_fit_for(spec):
                self._leave_to_another()
            elif win_gate(objects, spec["attempt"], signer := Signer(secret), self._process, self._leave_if_used):
                self._call(SharedCall(objects, spec, self._state), signer)
            else:
                self._answer(NOTHING)
        except ObjectsError as error:
            self._answer(NOTHING, b"", error.message.encode("utf-8", "replace").replace(b"\n", b" "))

    def _call(self, call: SharedCall, signer: Signer) -> None:
        self._calls += 1
        self._begun[:COUNT_BYTES] = self._calls.to_bytes(COUNT_BYTES, "little")
        started_at, begun = utc_text(time.time_ns()), time.monotonic()
        call.perform()
        is_swift, is_light = self._waits.none_since(begun), self._effort.is_light()
        has_started = self._starts.any_since()
        if has_started and os.getpid() != self._pid:
            flush_streams()
            os._exit(call.exit_code)  # a process that the function forked, and that returned from it
        self._state.note_files()
        report = call.imports_report()
        if report is not None:
            self._answer(IMPORTS, b"", report)
        stays = call.is_well and not (has_started and self._leaks.are_running())
        if not stays:
            finish_as_the_interpreter_would()
        flush_streams()
        if call.is_silent:
            os._exit(call.exit_code)
        facts = call.durability, signer.sign(call.only_status(started_at))
        if not stays:
            self._answer(LAST, *facts)
            os._exit(call.exit_code)
        may_have_leaked = (has_started and self._leaks.may_be_elsewhere()) or self._leaks.has_output()
        how = LIGHT if is_swift and is_light else SWIFT if is_swift else DONE
        self._answer(WAITS if may_have_leaked else how, *facts)
        if may_have_leaked:
            self._wait_for_go()

    def _wait_for_go(self) -> None:
        if not os.read(self._go, 1):
            finish_as_the_interpreter_would()
            os._exit(0)
        self._waits.forget()

    def _leave_if_used(self) -> None:
        """No gate can be written. An earlier task may be the cause, for instance with a limit on the size of files."""
        if self._calls:
            self._leave_to_another()

    def _leave_to_another(self) -> NoReturn:
        self._answer(UNFIT)
        finish_as_the_interpreter_would()
        flush_streams()
        os._exit(0)

    def _answer(self, word: bytes, durability: bytes = b"", document: bytes = b"") -> None:
        rest = b"%b\t%b\t%b\t%b\n" % (word, self._attempt, durability, document)
        while rest := rest[os.write(self._answers, rest) :]:
            continue


class _WatchedEnviron(type(os.environ)):  # type: ignore[misc]
    """`os.environ` that notices changes. Comparing all variables after each call would take longer than most calls."""

    has_changed = False

    def __setitem__(self, name: Any, value: Any) -> None:
        _WatchedEnviron.has_changed = True
        super().__setitem__(name, value)

    def __delitem__(self, name: Any) -> None:
        _WatchedEnviron.has_changed = True
        super().__delitem__(name)


class _SharedState:
    """What all calls share: the inherited environment, streams, import path and loaded functions."""

    def __init__(self, leaks: LeakCheck) -> None:
        self.leaks = leaks
        self.environ = inherited()
        self.functions: dict[tuple[str | None, str | None, str], Callable[..., Any]] = {}
        self._streams = sys.stdout, sys.stderr
        self._path: list[str] = []
        self._folders: tuple[str, ...] = ()  # of the current project, the root first
        self._files: dict[str, int | None] = {}  # loaded files of the project, with their times
        self._look_again_at = 0.0  # when to check those times again
        self._known = set(sys.modules)
        self._set: dict[str, str] | None = None  # variables of the last task
        for environ in (_ENVIRON, _ENVIRON_OF_BYTES):
            environ.__class__ = _WatchedEnviron

    def settled(self) -> None:
        """Remember the import path that the first call has set up."""
        self._path = list(sys.path)

    def restore(self) -> bool:
        """Undo what a call may have changed. False if no call has set up the process yet."""
        if not self._path:
            return False
        sys.path[:] = self._path
        # The original objects, even if a call has replaced them.
        os.environ, os.environb = _ENVIRON, _ENVIRON_OF_BYTES
        sys.stdout, sys.stderr = self._streams
        sys.argv = [""]
        return True

    def use_environment(self, spec: dict[str, Any], bindings: Bindings) -> None:
        """Set the variables of the task. Only differences to the last task are set, because each change is a call of the C library."""
        if self._set is None or _WatchedEnviron.has_changed:
            self._restore_environment()
        before, wanted = self._set or {}, additions(spec, self.environ, bindings)
        if before.keys() != wanted.keys():
            for name in before.keys() - wanted.keys():
                _set(name, self.environ.get(name))
        for name, value in wanted.items():
            if before.get(name) != value:
                os.environ[name] = value
        self._set, _WatchedEnviron.has_changed = wanted, False

    def _restore_environment(self) -> None:
        """Restore the inherited environment, without variables that are not for tasks."""
        hidden = hidden_names({"inputs": None, "env": {}}, self.environ)
        for name in set(os.environ).difference(self.environ).union(hidden):
            _set(name, None)
        for name in self.environ.keys() - set(hidden):
            if os.environ.get(name) != self.environ[name]:
                os.environ[name] = self.environ[name]
        self._set = None

    def is_fit_for(self, spec: dict[str, Any]) -> bool:
        """False for another project, or if a loaded file has changed."""
        folders = (spec["root"], *spec["paths"])
        if self._folders not in ((), folders):
            return False
        self._folders = folders
        now = time.monotonic()
        if now < self._look_again_at:
            return True
        self._look_again_at = now + LOOK_AGAIN_SECONDS
        return all(time_of(file) == then for file, then in self._files.items())

    def has_waited(self) -> None:
        """The process has waited for an order. Files may have changed, so they are checked before the next call."""
        self._look_again_at = 0.0

    def note_files(self) -> None:
        """Remember the files of the project that were loaded since the last call of this method."""
        if len(sys.modules) == len(self._known):
            return
        modules = [sys.modules[name] for name in set(sys.modules) - self._known]
        self._known = set(sys.modules)
        files = [getattr(module, "__file__", None) or "" for module in modules]
        own = tuple(f"{folder}/" for folder in self._folders)
        self._files |= {file: time_of(file) for file in files if file.startswith(own)}


class SharedCall(Call):
    """A call as in a process of its own, without the steps that an earlier call has done."""

    def __init__(self, objects: AttemptDocuments, spec: dict[str, Any], state: _SharedState) -> None:
        super().__init__(objects, spec, state.environ)
        self._state = state

    @property
    def is_well(self) -> bool:
        return not (self._failure or self.has_exited or self.exit_code)

    def imports_report(self) -> bytes | None:
        """The modules that the task imported, as JSON, if they are worth preloading."""
        names = self.imports()
        return imports_report(self._spec, names) if names else None

    @property
    def durability(self) -> bytes:
        return str(self._spec["durability"]).encode()

    def only_status(self, started_at: str) -> str:
        """The status document, not signed yet."""
        return only_status(self._spec["attempt"], started_at, returned(self.outcome()))

    def settle(self, bindings: Bindings) -> None:
        is_first = not self._state.restore()
        self._state.use_environment(self._spec, bindings)
        enter_folder(self._spec["root"])
        if is_first:
            use_streams()
            use_packages(self._spec["root"], self._spec["paths"])
            self._state.settled()

    def find(self) -> Callable[..., Any]:
        spec = self._spec
        wanted = spec["file"], spec["module"], spec["function"]
        if wanted not in self._state.functions:
            self._state.functions[wanted] = load_function(spec["root"], *wanted, spec["paths"])
            self._state.leaks.note_threads()
        return self._state.functions[wanted]


def _set(name: str, value: str | None) -> None:
    if value is not None:
        os.environ[name] = value
    elif name in os.environ:
        del os.environ[name]

"""The executor's end of a server that workers are forked from (see `ork.worker.pool.fork_server`). A request to it carries the socket
of a new worker, or that of a preloaded server."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from collections import deque
from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias

from ork.executors.local_worker import ATTEMPT_VARIABLE, BOOTSTRAP, ORDINARY_SIGNALS, restore_limit
from ork.executors.processes import collect

SEVERAL = "*"  # the tag of a worker with several attempts at a time (see `ork.worker.system.processes`)
AHEAD = "ahead"
MAX_TAG_BYTES = 512
MAX_FINGERPRINTS = 8
MAX_MESSAGE_BYTES = 1 << 16
_NEW_WORKER = b"."
_MAX_ERROR_BYTES = 4000
_COLLECT_AFTER_SECONDS = 0.2
_OWN_FOLDERS = ("worker", "objects", "model", "sdk", "system")


# Starts a server process with this socket and this file (for errors), and returns its pid. OSError if that fails.
Start: TypeAlias = Callable[[socket.socket, int], int]
_Request: TypeAlias = tuple[bytes, list[int], Callable[[], None]]  # data, descriptors, and a function that closes them


def spawned(interpreter: str, environ: dict[str, str], *, is_ahead: bool = False) -> Start:
    """Starts a new interpreter. `is_ahead`: its first worker is not needed yet."""

    def start(theirs: socket.socket, errors: int) -> int:
        pid = _spawn(interpreter, environ, theirs, errors, [AHEAD] if is_ahead else [])
        restore_limit(pid)
        return pid

    return start


class ForkServer:
    """One fork server process."""

    def __init__(
        self,
        interpreter: str,
        start: Start,
        ended: Callable[[ForkServer], None],
        on_message: Callable[[ForkServer, bytes], None] = lambda _server, _message: None,
    ) -> None:
        self.interpreter = interpreter
        self.has_served = False  # one of its workers has reported
        self.last_worker_at = 0.0  # when its last worker reported first
        self._ended = ended
        self._on_message = on_message
        self._unsent: deque[_Request] = deque()
        self._loop = asyncio.get_running_loop()
        self.errors = os.memfd_create("ork-fork-server")  # its stderr until it serves
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
        try:
            theirs.setblocking(True)
            self._pid = start(theirs, self.errors)
        except OSError:
            self._socket.close()
            os.close(self.errors)
            raise
        finally:
            theirs.close()
        self._loop.add_reader(self._socket, self._receive)

    @property
    def is_open(self) -> bool:
        return self._socket.fileno() >= 0

    def make_worker(self, control: socket.socket) -> None:
        """Fork a worker that uses this socket. The socket is closed if that fails."""
        self._send(_NEW_WORKER, [control.fileno()], control.close)

    def preloaded(self, request: bytes) -> Start:
        """Forks a copy of this server that imports the modules of the request (see `ork.worker.pool.preload`)."""

        def start(theirs: socket.socket, report: int) -> int:
            copies = [os.dup(theirs.fileno()), os.dup(report)]

            def close() -> None:
                for copy in copies:
                    os.close(copy)

            self._send(request, copies, close)
            return 0  # it reports its pid

        return start

    def _send(self, data: bytes, descriptors: list[int], close: Callable[[], None]) -> None:
        self._unsent.append((data, descriptors, close))
        if len(self._unsent) == 1:
            self._flush()

    def last_error(self) -> str:
        """The last line that it wrote to stderr."""
        data = os.pread(self.errors, _MAX_ERROR_BYTES, max(0, os.fstat(self.errors).st_size - _MAX_ERROR_BYTES))
        text = data.decode("utf-8", "replace").strip()
        return text.splitlines()[-1] if text else "it ended without a message"

    def retire(self) -> None:
        """End it after it has forked all requested workers."""
        if self._unsent:
            self._loop.call_later(_COLLECT_AFTER_SECONDS, self.retire)
        else:
            self._end()

    def detach(self) -> None:
        """End it after it has forked the workers that it already received."""
        self._end()

    def kill(self, pid: int = 0) -> None:
        """Kill the process. `pid` names it if it is not a child of this one."""
        with contextlib.suppress(OSError):
            if pid or self._pid:
                os.kill(pid or self._pid, signal.SIGKILL)
        self._end()

    def _flush(self) -> None:
        """Send as many sockets as possible; the rest follows when the connection is writable."""
        try:
            while self._unsent:
                data, descriptors, close = self._unsent[0]
                socket.send_fds(self._socket, [data], descriptors)
                self._unsent.popleft()
                close()
        except BlockingIOError:
            self._loop.add_writer(self._socket, self._flush)
            return
        except OSError:
            # Not within `make_worker`: the caller has not recorded the worker yet.
            self._loop.call_soon(self._end)
            return
        self._loop.remove_writer(self._socket)

    def _receive(self) -> None:
        """Only a preloaded server sends messages. The end of the connection means that it has ended."""
        try:
            message = self._socket.recv(MAX_MESSAGE_BYTES)
        except BlockingIOError:
            return
        except OSError:
            message = b""
        if message:
            self._on_message(self, message)
        else:
            self._end()

    def _end(self) -> None:
        if self._socket.fileno() < 0:
            return
        self._loop.remove_reader(self._socket)
        self._loop.remove_writer(self._socket)
        self._socket.close()
        self._loop.call_later(_COLLECT_AFTER_SECONDS, os.close, self.errors)
        while self._unsent:
            self._unsent.popleft()[2]()
        if self._pid:
            self._loop.call_later(_COLLECT_AFTER_SECONDS, collect, self._pid)
        self._ended(self)


def _spawn(interpreter: str, environ: dict[str, str], theirs: socket.socket, errors: int, words: list[str]) -> int:
    # Space for the attempt's tag, which each worker writes into its own copy.
    env = {**environ, ATTEMPT_VARIABLE: "-" * MAX_TAG_BYTES}
    return os.posix_spawn(
        interpreter,
        [interpreter, "-S", "-E", BOOTSTRAP, "ork.worker.pool.fork_server", *words],
        env,
        file_actions=[
            (os.POSIX_SPAWN_DUP2, theirs.fileno(), 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_RDWR, 0),
            (os.POSIX_SPAWN_DUP2, errors, 2),
        ],
        setsid=True,
        setsigmask=[],
        setsigdef=ORDINARY_SIGNALS,
    )


@lru_cache(maxsize=MAX_FINGERPRINTS)
def fingerprint_of(interpreter: str, _second: int) -> tuple[object, ...]:
    """Times and sizes of the files that a server loads. When one changes, the server is outdated."""
    package = os.path.dirname(os.path.dirname(BOOTSTRAP))
    paths = [interpreter, os.path.join(os.path.dirname(interpreter), "..", "pyvenv.cfg")]
    facts: list[object] = [_facts(path) for path in paths]
    own = [os.path.join(package, name) for name in _OWN_FOLDERS]
    folders = [package, *(folder for top in own for folder, _, _ in sorted(os.walk(top)))]
    for folder in folders:
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            files = [entry for entry in entries if entry.name.endswith(".py")]
            facts += sorted((file.name, file.stat().st_mtime_ns, file.stat().st_size) for file in files)
    return tuple(facts)


def _facts(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino

"""Servers that workers are forked from, one for each interpreter (see `ork.worker.warm`): requests out, pids in.

Nothing here is needed: whatever a server cannot do, or does not answer, is handed back, to be done without it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import time
from collections import deque
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from ork.executors.local_python import BOOTSTRAP

MARK = "ORK_ATTEMPT_ID"
ORDINARY_SIGNALS = [signal.SIGPIPE, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD, signal.SIGXFSZ]
PATIENCE_SECONDS = 5.0
_ROOM_FOR_MARK = 512
_LARGEST_REQUEST = 1 << 16
_MOST_SERVERS = 8
_UNFIT_SECONDS = 60.0
_COLLECT_AFTER_SECONDS = 0.2
_LOOK_AT_FILES_SECONDS = 1.0
_OWN_FOLDERS = ("worker", "objects", "model", "sdk", ".")

Started = Callable[[str, int, int], None]  # the attempt, its worker's pid and start time
HandedBack = Callable[[str], None]  # the attempt: start it in another way


class ForkServers:
    """At most a few at a time; the one that was not used for longest goes first."""

    def __init__(self, started: Started, handed_back: HandedBack) -> None:
        self._started = started
        self._handed_back = handed_back
        self._servers: dict[str, _Server] = {}
        self._unfit: dict[str, float] = {}  # interpreters in which no server came up, and until when none is tried
        self._environ: dict[str, str] = {}

    def use_environment(self, environ: dict[str, str]) -> None:
        """For servers from now on; one with another environment is no longer like a new interpreter."""
        self._environ = environ

    def ask(self, interpreter: str, request: Mapping[str, Any]) -> bool:
        """True if a worker for `request["attempt"]` is on its way, or will be handed back."""
        data = json.dumps(request).encode()
        if len(data) > _LARGEST_REQUEST or len(str(request["attempt"]).encode()) > _ROOM_FOR_MARK:
            return False
        server = self._server(interpreter)
        if server is None:
            return False
        server.send(str(request["attempt"]), data)
        return True

    def close(self) -> None:
        for server in list(self._servers.values()):
            server.let_go()
        self._servers.clear()

    def _server(self, interpreter: str) -> _Server | None:
        looks = _looks_of(interpreter, int(time.monotonic() / _LOOK_AT_FILES_SECONDS)), self._environ
        server = self._servers.pop(interpreter, None)
        if server is not None and server.looks != looks:
            server.retire()
            server = None
        if server is None:
            server = self._made(interpreter, looks)
        if server is not None:
            self._servers[interpreter] = server  # the last one: used most recently
        return server

    def _made(self, interpreter: str, looks: object) -> _Server | None:
        if time.monotonic() < self._unfit.get(interpreter, 0.0):
            return None
        while len(self._servers) >= _MOST_SERVERS:
            self._servers.pop(next(iter(self._servers))).retire()
        try:
            return _Server(interpreter, self._environ, looks, self._started, self._ended)
        except OSError:
            return None

    def _ended(self, server: _Server, unanswered: list[str]) -> None:
        if self._servers.get(server.interpreter) is server:
            del self._servers[server.interpreter]
        if not server.has_answered and unanswered:
            self._unfit[server.interpreter] = time.monotonic() + _UNFIT_SECONDS
        for attempt in unanswered:
            self._handed_back(attempt)


class _Server:
    """One process. OSError if it cannot be started."""

    def __init__(
        self,
        interpreter: str,
        environ: dict[str, str],
        looks: object,
        started: Started,
        ended: Callable[[_Server, list[str]], None],
    ) -> None:
        self.interpreter = interpreter
        self.looks = looks
        self.has_answered = False
        self._started = started
        self._ended = ended
        self._unanswered: dict[str, None] = {}
        self._unsent: deque[bytes] = deque()
        self._is_retired = False
        self._last_word = time.monotonic()
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
        try:
            theirs.setblocking(True)
            self._pid = _spawn(interpreter, environ, theirs)
        except OSError:
            self._socket.close()
            raise
        finally:
            theirs.close()
        self._loop.add_reader(self._socket, self._receive)

    def send(self, attempt: str, request: bytes) -> None:
        if not self._unanswered:
            self._last_word = time.monotonic()
        self._unanswered[attempt] = None
        self._unsent.append(request)
        if len(self._unsent) == 1:
            self._flush()
        if self._timer is None:
            self._timer = self._loop.call_later(PATIENCE_SECONDS, self._judge)

    def retire(self) -> None:
        """It ends when everything it was asked for has been answered."""
        self._is_retired = True
        if not self._unanswered:
            self._end()

    def let_go(self) -> None:
        """It may still carry out what it was asked for; nobody will hear of it here."""
        self._unanswered.clear()
        self._end()

    def _flush(self) -> None:
        """Sends as much as the socket takes; the rest follows when there is room."""
        try:
            while self._unsent:
                self._socket.send(self._unsent[0])
                self._unsent.popleft()
        except BlockingIOError:
            self._loop.add_writer(self._socket, self._flush)
            return
        except OSError:
            # Not from within `send`: who asked has not yet noted that it did.
            self._loop.call_soon(self._end)
            return
        self._loop.remove_writer(self._socket)

    def _receive(self) -> None:
        try:
            while data := self._socket.recv(4096):
                self._answered(data)
                if self._socket.fileno() < 0:
                    return
        except BlockingIOError:
            return
        except OSError:
            pass
        self._end()

    def _answered(self, data: bytes) -> None:
        pid, start_time, attempt = data.decode().split(" ", 2)
        self.has_answered = True
        self._last_word = time.monotonic()
        if attempt in self._unanswered and int(pid) > 0:
            del self._unanswered[attempt]
            self._started(attempt, int(pid), int(start_time))
        if int(pid) < 0 or (self._is_retired and not self._unanswered):
            # It could not fork, or is no longer wanted: what is unanswered is handed back.
            self._end()

    def _judge(self) -> None:
        """One that says nothing for long (halted, perhaps) is replaced: the gate lets only one worker through."""
        self._timer = None
        if not self._unanswered or self._socket.fileno() < 0:
            return
        silence = time.monotonic() - self._last_word
        if silence < PATIENCE_SECONDS:
            self._timer = self._loop.call_later(PATIENCE_SECONDS - silence, self._judge)
            return
        with contextlib.suppress(OSError):
            os.kill(self._pid, signal.SIGKILL)
        self._end()

    def _end(self) -> None:
        if self._socket.fileno() < 0:
            return
        self._loop.remove_reader(self._socket)
        self._loop.remove_writer(self._socket)
        self._socket.close()
        if self._timer is not None:
            self._timer.cancel()
        self._loop.call_later(_COLLECT_AFTER_SECONDS, _collect, self._pid)
        unanswered = list(self._unanswered)
        self._unanswered.clear()
        self._ended(self, unanswered)


def _spawn(interpreter: str, environ: dict[str, str], theirs: socket.socket) -> int:
    # Room for the attempt's mark, which each worker writes into its own copy.
    env = {**environ, "ORK_TOKEN": "", MARK: "-" * _ROOM_FOR_MARK}
    return os.posix_spawn(
        interpreter,
        [interpreter, "-S", "-E", BOOTSTRAP, "ork.worker.warm"],
        env,
        file_actions=[
            (os.POSIX_SPAWN_DUP2, theirs.fileno(), 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_RDWR, 0),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_RDWR, 0),
        ],
        setsid=True,
        setsigmask=[],
        setsigdef=ORDINARY_SIGNALS,
    )


@lru_cache(maxsize=_MOST_SERVERS)
def _looks_of(interpreter: str, _moment: int) -> tuple[object, ...]:
    """Whatever a server has loaded, by time and size: when one of these files changes it is out of date."""
    package = os.path.dirname(os.path.dirname(BOOTSTRAP))
    paths = [interpreter, os.path.join(os.path.dirname(interpreter), "..", "pyvenv.cfg")]
    facts: list[object] = [_facts(path) for path in paths]
    for folder in _OWN_FOLDERS:
        with contextlib.suppress(OSError), os.scandir(os.path.join(package, folder)) as entries:
            files = [entry for entry in entries if entry.name.endswith(".py")]
            facts += sorted((file.name, file.stat().st_mtime_ns, file.stat().st_size) for file in files)
    return tuple(facts)


def _facts(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _collect(pid: int) -> None:
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)

"""The server that workers are forked from (see `ork.worker.pool.fork_server`), as its executor sees it. The executor sends it one socket per worker."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from collections import deque
from collections.abc import Callable
from functools import lru_cache

from ork.executors.descriptors import restore_limit
from ork.executors.local_python import BOOTSTRAP
from ork.executors.processes import collect

ATTEMPT_VARIABLE = "ORK_ATTEMPT_ID"
SEVERAL = "*"  # the tag of a worker with several attempts at a time (see `ork.worker.system.attempt_tag`)
AHEAD = "ahead"
MAX_TAG_BYTES = 512
ORDINARY_SIGNALS = [signal.SIGPIPE, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD, signal.SIGXFSZ]
MAX_FINGERPRINTS = 8
_MAX_ERROR_BYTES = 4000
_COLLECT_AFTER_SECONDS = 0.2
_OWN_FOLDERS = ("worker", "objects", "model", "sdk")


class ForkServer:
    """One fork server process. OSError if it cannot be started. `is_ahead`: its first worker is not needed yet."""

    def __init__(
        self,
        interpreter: str,
        environ: dict[str, str],
        ended: Callable[[ForkServer], None],
        *,
        is_ahead: bool = False,
    ) -> None:
        self.interpreter = interpreter
        self.has_served = False  # one of its workers has reported
        self.last_worker_at = 0.0  # when its last worker reported first
        self._ended = ended
        self._unsent: deque[socket.socket] = deque()
        self._loop = asyncio.get_running_loop()
        self._errors = os.memfd_create("ork-fork-server")  # its stderr until it serves
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
        try:
            theirs.setblocking(True)
            self._pid = _spawn(interpreter, environ, theirs, self._errors, [AHEAD] if is_ahead else [])
            restore_limit(self._pid)
        except OSError:
            self._socket.close()
            os.close(self._errors)
            raise
        finally:
            theirs.close()
        self._loop.add_reader(self._socket, self._receive)

    def make_worker(self, door: socket.socket) -> None:
        """Fork a worker that uses this socket. The socket is closed if that fails."""
        self._unsent.append(door)
        if len(self._unsent) == 1:
            self._flush()

    def last_error(self) -> str:
        """The last line that it wrote to stderr."""
        data = os.pread(self._errors, _MAX_ERROR_BYTES, max(0, os.fstat(self._errors).st_size - _MAX_ERROR_BYTES))
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

    def kill(self) -> None:
        with contextlib.suppress(OSError):
            os.kill(self._pid, signal.SIGKILL)
        self._end()

    def _flush(self) -> None:
        """Send as many sockets as possible; the rest follows when the connection is writable."""
        try:
            while self._unsent:
                socket.send_fds(self._socket, [b"."], [self._unsent[0].fileno()])
                self._unsent.popleft().close()
        except BlockingIOError:
            self._loop.add_writer(self._socket, self._flush)
            return
        except OSError:
            # Not within `make_worker`: the caller has not recorded the worker yet.
            self._loop.call_soon(self._end)
            return
        self._loop.remove_writer(self._socket)

    def _receive(self) -> None:
        """The server sends nothing, so this means that it has ended."""
        with contextlib.suppress(BlockingIOError, ConnectionResetError):
            if self._socket.recv(16):
                return
        self._end()

    def _end(self) -> None:
        if self._socket.fileno() < 0:
            return
        self._loop.remove_reader(self._socket)
        self._loop.remove_writer(self._socket)
        self._socket.close()
        self._loop.call_later(_COLLECT_AFTER_SECONDS, os.close, self._errors)
        while self._unsent:
            self._unsent.popleft().close()
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

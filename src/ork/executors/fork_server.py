"""The server that workers are forked from (see `ork.worker.pool.fork_server`), as its executor sees it: doors out, nothing in."""

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
SEVERAL = "*"  # the mark of a worker that has more than one attempt at a time (see `ork.worker.system.attempt_tag`)
AHEAD = "ahead"
MAX_TAG_BYTES = 512
ORDINARY_SIGNALS = [signal.SIGPIPE, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD, signal.SIGXFSZ]
MAX_FINGERPRINTS = 8
_MAX_ERROR_BYTES = 4000
_COLLECT_AFTER_SECONDS = 0.2
_OWN_FOLDERS = ("worker", "objects", "model", "sdk")


class ForkServer:
    """One process. OSError if it cannot be started. `is_ahead`: nobody waits for its first worker yet."""

    def __init__(
        self,
        interpreter: str,
        environ: dict[str, str],
        ended: Callable[[ForkServer], None],
        *,
        is_ahead: bool = False,
    ) -> None:
        self.interpreter = interpreter
        self.has_served = False  # a worker of its making has been heard of
        self.last_worker_at = 0.0  # when the last one came alive
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
        """A worker will be behind the door, or it will be closed."""
        self._unsent.append(door)
        if len(self._unsent) == 1:
            self._flush()

    def last_error(self) -> str:
        """What it wrote to its stderr last."""
        said = os.pread(self._errors, _MAX_ERROR_BYTES, max(0, os.fstat(self._errors).st_size - _MAX_ERROR_BYTES))
        text = said.decode("utf-8", "replace").strip()
        return text.splitlines()[-1] if text else "it ended without a word"

    def retire(self) -> None:
        """It ends when it has made the workers it was asked for."""
        if self._unsent:
            self._loop.call_later(_COLLECT_AFTER_SECONDS, self.retire)
        else:
            self._end()

    def detach(self) -> None:
        """It ends when it has made the workers that it knows of."""
        self._end()

    def kill(self) -> None:
        with contextlib.suppress(OSError):
            os.kill(self._pid, signal.SIGKILL)
        self._end()

    def _flush(self) -> None:
        """Hands over as many as the socket takes; the rest follows when there is room."""
        try:
            while self._unsent:
                socket.send_fds(self._socket, [b"."], [self._unsent[0].fileno()])
                self._unsent.popleft().close()
        except BlockingIOError:
            self._loop.add_writer(self._socket, self._flush)
            return
        except OSError:
            # Not from within `make_worker`: who asked has not yet noted that it did.
            self._loop.call_soon(self._end)
            return
        self._loop.remove_writer(self._socket)

    def _receive(self) -> None:
        """It has nothing to say: it has ended."""
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
    # Room for the attempt's mark, which each worker writes into its own copy.
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
    """Whatever a server has loaded, by time and size: when one of these files changes it is out of date."""
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

"""The fork server: a process with the worker's code loaded, which forks a reusable worker for each request.

Its standard input is a socket to the executor. Each message carries the control socket of a new worker: that worker and the
executor talk through it. The server knows nothing of attempts, has one thread and imports nothing of the user's. It ends when
the executor closes the socket; its workers do not depend on it.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import _socket
import gc
import os
import select

from ork.worker.call import packages
from ork.worker.system import processes
from ork.worker.system.attempt_tag import AttemptTag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

IDLE_SECONDS = 300.0
_SOCKET = 0
_CANNOT_TAG = 4
AHEAD = "ahead"
# What most tasks need. The child that is forked first imports it by itself.
_USUAL = (
    "_ctypes",
    "fcntl",
    "ork.worker.pool.reusable_worker",
    "ork.worker.pool.shared_supervisor",
    "ork.objects.journaled",
    "ork.worker.supervise.command",
    "ork.worker.supervise.function",
)


def start(when: str = "") -> int:
    """Serves until the executor is gone, or has been silent for long. With AHEAD nobody waits for the first worker yet."""
    try:
        tag = AttemptTag()
    except (OSError, ValueError):
        return _CANNOT_TAG
    server = _Server(tag)
    os.chdir("/")  # it belongs to no project; workers know the folders they need by their whole names
    # Who waits for the first one has it on its way before anything is loaded that only later ones profit from.
    if when == AHEAD or server.serve_one(None):
        _load()
        os.dup2(1, 2)  # it has come up: nobody reads more of what it says
        fingerprint = packages.PackageFingerprint()
        # One that is out of date leaves the request to others.
        while server.is_asked() and fingerprint.is_current() and server.serve_one(fingerprint):
            continue
    return 0


def _load() -> None:
    """What is done here is done once for all, and in no child."""
    from importlib import import_module

    trial = packages.Trial()
    for name in _USUAL:
        import_module(name)
    if trial.is_passed():
        packages.use_packages()
    processes.own_process()
    _make_streams()
    # Collections in children would otherwise copy every page of what they share with us.
    gc.freeze()


def _make_streams() -> None:
    """Those of all children. They find out what they write to when they are made: a pipe, as it will be."""
    kept = os.dup(1), os.dup(2)
    reading, writing = os.pipe()
    for descriptor in (1, 2):
        os.dup2(writing, descriptor)
    from ork.worker.call.surroundings import use_streams

    use_streams()
    for descriptor, null in zip((1, 2), kept, strict=True):
        os.dup2(null, descriptor)
    for descriptor in (*kept, reading, writing):
        os.close(descriptor)


class _Server:
    def __init__(self, tag: AttemptTag) -> None:
        self._tag = tag
        self._socket = _socket.socket(fileno=_SOCKET)
        self._wake, self._ring = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(self._ring, False)
        _signal.set_wakeup_fd(self._ring, warn_on_full_buffer=False)
        _signal.signal(_signal.SIGCHLD, lambda _number, _frame: None)
        self._poller = select.poll()
        for descriptor in (_SOCKET, self._wake):
            self._poller.register(descriptor, select.POLLIN)

    def is_asked(self) -> bool:
        """Waits for a request; False when there will be no more."""
        while True:
            ready = [descriptor for descriptor, _ in self._poller.poll(IDLE_SECONDS * 1000)]
            if not ready:
                return False
            if self._wake in ready:
                os.read(self._wake, 4096)
                _collect()
            if _SOCKET in ready:
                return True

    def serve_one(self, fingerprint: packages.PackageFingerprint | None) -> bool:
        """Waits for the door of a worker and becomes that worker, by a fork; False when there will be no more."""
        if not self.is_asked():
            return False
        try:
            message, doors = self._receive()
        except ConnectionResetError:
            return True
        except OSError:
            return False
        for door in doors:
            # Where no fork is possible the door is closed, too: whoever waits there will do without us.
            with_fork = self._fork()
            if with_fork == 0:
                self._become_worker(door, fingerprint)
            os.close(door)
        return bool(message)

    def _receive(self) -> tuple[bytes, list[int]]:
        size = 4
        message, extra, _, _ = self._socket.recvmsg(16, _socket.CMSG_LEN(size))
        doors = [data for level, kind, data in extra if (level, kind) == (_socket.SOL_SOCKET, _socket.SCM_RIGHTS)]
        return message, [int.from_bytes(data[:size], "little") for data in doors]

    def _fork(self) -> int:
        try:
            return os.fork()
        except OSError:
            return -1

    def _become_worker(self, door: int, fingerprint: packages.PackageFingerprint | None) -> NoReturn:
        """From here on everything is as in an interpreter of its own."""
        code = 1
        try:
            os.setsid()
            self._tag.write(b"")
            os.close(self._wake)
            os.close(self._ring)
            os.dup2(1, _SOCKET)  # the null device, open for reading too
            os.dup2(1, 2)  # what the server says when it fails is not for workers
            os.set_inheritable(door, False)
            from ork.worker.pool.reusable_worker import ReusableWorker

            code = ReusableWorker(door, self._tag, fingerprint).serve()
        finally:
            os._exit(code)


def _collect() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            continue
    except ChildProcessError:
        return

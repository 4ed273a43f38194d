"""The fork server: a process with the worker's code loaded, which forks a reusable worker for each request.

Its standard input is a socket to the executor. A request carries the control socket of a new worker, through which that worker and
the executor communicate. The server knows nothing of attempts, has one thread and imports nothing of the user's. It ends when
the executor closes the socket; its workers do not depend on it.

Another request asks for a preloaded server: a copy of this process that imports modules (see `preload`), and then serves
requests for workers on a socket of its own.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import _socket
import gc
import os
import select

from ork.worker.call import packages
from ork.worker.system import processes
from ork.worker.system.processes import AttemptTag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

IDLE_SECONDS = 300.0
_SOCKET = 0
_CANNOT_TAG = 4
_NEW_WORKER = b"."
_LARGEST_REQUEST = 1 << 16
_DESCRIPTOR_BYTES = 4
AHEAD = "ahead"
# What most tasks need. The worker that is forked first imports it by itself.
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
    """Serve until the executor is gone or has been silent for long. With AHEAD the first worker is not needed yet."""
    try:
        tag = AttemptTag()
    except (OSError, ValueError):
        return _CANNOT_TAG
    server = _ForkServer(tag)
    os.chdir("/")  # it belongs to no project; workers use absolute paths
    # The first worker is forked before anything is loaded that only later ones need, because a task waits for it.
    if when == AHEAD or server.serve_one(None):
        _load()
        os.dup2(1, 2)  # it has started: nobody reads its errors any more
        server.serve(packages.PackageFingerprint())
    return 0


def _load() -> None:
    """Load and do everything that is the same for all workers."""
    from importlib import import_module

    trial = packages.Trial()
    for name in _USUAL:
        import_module(name)
    if trial.is_passed():
        packages.use_packages()
    processes.own_process()
    _make_streams()
    # Without it, a garbage collection in a child would write to, and so copy, every page that it shares with this process.
    gc.freeze()


def _make_streams() -> None:
    """Create the standard streams of all children. A stream looks at its file when it is created: here a pipe, as in tasks."""
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


class _ForkServer:
    """Serves the socket at standard input."""

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

    def serve(self, fingerprint: packages.PackageFingerprint) -> None:
        """Serve requests until there are no more. An outdated server ends without answering; the executor starts another."""
        while self._wait() and fingerprint.is_current() and self.serve_one(fingerprint):
            continue

    def _wait(self) -> bool:
        """Wait for a request. False when there will be no more."""
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
        """Wait for a request and fork the process that it asks for. False when there will be no more."""
        if not self._wait():
            return False
        try:
            request, descriptors = self._receive()
        except ConnectionResetError:
            return True
        except OSError:
            return False
        if request == _NEW_WORKER:
            self._fork_into(lambda: self._become_worker(descriptors[0], fingerprint))
        elif request and fingerprint is not None:
            self._fork_into(lambda: self._become_preloaded(request, descriptors, fingerprint))
        for descriptor in descriptors:
            os.close(descriptor)  # if the fork failed, this tells the executor
        return bool(request)

    def _receive(self) -> tuple[bytes, list[int]]:
        size = _DESCRIPTOR_BYTES
        request, extra, _, _ = self._socket.recvmsg(_LARGEST_REQUEST, _socket.CMSG_LEN(2 * size))
        found = [data for level, kind, data in extra if (level, kind) == (_socket.SOL_SOCKET, _socket.SCM_RIGHTS)]
        return request, [
            int.from_bytes(data[at : at + size], "little") for data in found for at in range(0, len(data), size)
        ]

    def _fork_into(self, body: Callable[[], int]) -> None:
        """Run `body` in a new process with a session of its own, which exits with the code that it returns."""
        try:
            pid = os.fork()
        except OSError:
            return
        if pid:
            return
        code = 1
        try:
            os.setsid()
            self._tag.write(b"")
            os.close(self._wake)
            os.close(self._ring)
            code = body()
        finally:
            os._exit(code)

    def _become_worker(self, control: int, fingerprint: packages.PackageFingerprint | None) -> int:
        os.dup2(1, _SOCKET)  # the null device, open for reading too
        os.dup2(1, 2)  # stderr is for errors of the server
        os.set_inheritable(control, False)
        from ork.worker.pool.reusable_worker import ReusableWorker

        return ReusableWorker(control, self._tag, fingerprint).serve()

    def _become_preloaded(
        self, request: bytes, descriptors: list[int], fingerprint: packages.PackageFingerprint
    ) -> int:
        control, report = descriptors
        parent = os.getppid()
        self._socket.detach()
        os.dup2(control, _SOCKET)
        os.close(control)
        _signal.set_wakeup_fd(-1)
        _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)
        from ork.worker.pool.preload import preload

        if preload(request, _SOCKET, report, parent):
            _ForkServer(self._tag).serve(fingerprint)
        return 0


def _collect() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            continue
    except ChildProcessError:
        return

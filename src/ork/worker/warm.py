"""The fork server: has loaded what a worker needs, and becomes one, by a fork, for every attempt it is asked for.

Its standard input is a socket to the executor: one request in, one answer out, each a message. It knows nothing of
attempts but what it passes on, has one thread and imports nothing of the user's. When the executor lets go it ends;
the workers it became do not care.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import gc
import os
import select

from ork.objects.json_text import strict_json
from ork.worker import main, packages, system
from ork.worker.mark import MARK, Mark

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

IDLE_SECONDS = 300.0
LARGEST_REQUEST = 1 << 18
_SOCKET = 0
_CANNOT_MARK = 4
# What most tasks need. The child that is forked first imports it by itself.
_USUAL = (
    "_ctypes",
    "_socket",
    "ork.worker.shim",
    "ork.worker.command",
    "ork.worker.function",
    "ork.worker.invoke",
)


def start() -> int:
    """Serves until the executor is gone, or has been silent for long."""
    try:
        mark = Mark()
    except (OSError, ValueError):
        return _CANNOT_MARK
    server = _Server(mark)
    os.chdir("/")  # it belongs to no project; workers know the folders they need by their whole names
    # The first one is on its way before anything is loaded that only later ones profit from.
    if server.serve_one():
        _load()
        traces = packages.Traces()
        # One that is out of date leaves the request to others.
        while server.is_asked() and traces.are_fresh() and server.serve_one():
            continue
    return 0


def _load() -> None:
    from importlib import import_module

    for name in _USUAL:
        import_module(name)
    packages.use_packages_if_harmless()
    # Collections in children would otherwise copy every page of what they share with us.
    gc.freeze()


class _Server:
    def __init__(self, mark: Mark) -> None:
        self._mark = mark
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

    def serve_one(self) -> bool:
        """Waits for a request and carries it out; False when there will be no more."""
        if not self.is_asked():
            return False
        try:
            data = os.read(_SOCKET, LARGEST_REQUEST)
        except ConnectionResetError:
            return True  # the executor left before it read our last answers; its last requests are still to come
        except OSError:
            return False
        if data:
            self._fork(strict_json(data, max_size=LARGEST_REQUEST))
        return bool(data)

    def _fork(self, request: dict[str, Any]) -> None:
        try:
            pid = os.fork()
        except OSError:
            pid = -1
        if pid == 0:
            self._become_worker(request)
        # Before it is collected, so that the pid means this process and no other.
        start_time = system.start_time_of(pid) if pid > 0 else None
        try:
            os.write(_SOCKET, f"{pid} {start_time or 0} {request['attempt']}".encode())
        except OSError:
            return  # the executor is gone, and finds the attempt by its gate

    def _become_worker(self, request: dict[str, Any]) -> NoReturn:
        """From here on everything is as in an interpreter that was started for this attempt."""
        code = 1
        try:
            self._mark.write(request["attempt"])
            os.setsid()
            _signal.set_wakeup_fd(-1)
            _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)
            os.close(self._wake)
            os.close(self._ring)
            os.dup2(1, _SOCKET)  # the null device, open for reading too
            _use_log(request["log"])
            os.environ["ORK_TOKEN"] = request["token"]
            os.environ[MARK] = request["attempt"]
            code = main.perform(request["objects"], request["spec"])
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(code)


def _use_log(path: str) -> None:
    """Its own troubles, should it have any before the task begins, are told in the task's log."""
    try:
        log = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        return
    os.dup2(log, 2)
    os.close(log)


def _collect() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            continue
    except ChildProcessError:
        return

"""Starts `ork serve --on-request` by a fork of a process that has imported what a ready service has imported.

Importing takes seconds on a small machine, and a day in the box has hundreds of cold starts. The length of a cold start on the virtual clock is fixed, so
nothing that is measured becomes shorter: what a service imports later, during a request, it imports here during the request, too. A service that was
started in the usual way says what is imported (`modules`).

Only the standard library is imported at the top of this file: it is also the program of the process that is forked.
"""

from __future__ import annotations

import array
import importlib
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).resolve().parents[2]
_LISTED = "MODULES_OF_A_READY_SERVICE"


class Fork:
    """One forked process, with the part of `subprocess.Popen` that instances need."""

    def __init__(self, pid: int, stdout: IO[str], stderr: IO[str]) -> None:
        self.pid, self.stdout, self._stderr = pid, stdout, stderr
        self._handle: int | None = None
        with suppress(ProcessLookupError):  # it has ended
            self._handle = os.pidfd_open(pid)

    def poll(self) -> int | None:
        """0 once it has ended; its exit code is not known."""
        return 0 if self._has_ended(0.0) else None

    def _has_ended(self, seconds: float | None) -> bool:
        return self._handle is None or bool(select.select([self._handle], [], [], seconds)[0])

    def terminate(self) -> None:
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        self._send(signal.SIGKILL)

    def _send(self, number: int) -> None:
        with suppress(ProcessLookupError):
            if self._handle is not None:
                signal.pidfd_send_signal(self._handle, number)

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """What it wrote and was not read, once it has ended."""
        if not self._has_ended(timeout):
            raise subprocess.TimeoutExpired("ork serve", timeout or 0.0)
        written = self.stdout.read(), self._stderr.read()
        for opened in (self.stdout, self._stderr):
            opened.close()
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
        return written


class Preloaded:
    """The process that is forked. `start` may be called by several threads."""

    def __init__(self, modules: Sequence[str], environment: Mapping[str, str]) -> None:
        self._lock = threading.Lock()
        self._socket, theirs = socket.socketpair()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.cloud.preloaded", str(theirs.fileno())],
            cwd="/", env={**environment, "PYTHONPATH": str(ROOT)}, stdin=subprocess.PIPE, pass_fds=[theirs.fileno()], text=True,
        )  # fmt: skip
        theirs.close()
        assert self._process.stdin is not None
        self._process.stdin.write("\n".join(modules))
        self._process.stdin.close()
        assert self._socket.recv(1) == b"+"

    def start(self, folder: Path, environment: Mapping[str, str]) -> Fork:
        ends = [os.pipe(), os.pipe()]
        order = "\0".join([str(folder), *(f"{name}={value}" for name, value in environment.items())]).encode()
        with self._lock:
            sent = array.array("i", [write for _, write in ends])
            length = len(order).to_bytes(4, "big")
            self._socket.sendmsg([length], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, sent)])
            self._socket.sendall(order)
            pid = int.from_bytes(_received(self._socket, 4), "big")
        for _, write in ends:
            os.close(write)
        stdout, stderr = (os.fdopen(read, "r", encoding="utf-8") for read, _ in ends)
        return Fork(pid, stdout, stderr)

    def close(self) -> None:
        self._socket.close()
        self._process.wait(30)


def modules_of_a_ready_service(folder: Path, environment: Mapping[str, str]) -> list[str]:
    """Starts a service in the usual way, and ends it when it is ready."""
    listed = folder.parent / f"{folder.name}.modules"
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.cloud.preloaded"],
        cwd=folder, env={**environment, "PYTHONPATH": str(ROOT), _LISTED: str(listed)}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert "url=" in process.stdout.readline()
    process.terminate()
    process.communicate(timeout=60)
    return listed.read_text().split("\n")


# ── in the other processes ───────────────────────────────────────────────────────────────────────


def _received(connection: socket.socket, length: int) -> bytes:
    data = b""
    while len(data) < length:
        part = connection.recv(length - len(data))
        if not part:
            raise EOFError
        data += part
    return data


class _Noting:
    """A stdout that notes what is imported when the service says where it is."""

    def __init__(self, stdout: Any) -> None:
        self._stdout = stdout

    def write(self, text: str) -> int:
        if "url=" in text:
            Path(os.environ[_LISTED]).write_text("\n".join(name for name in sys.modules if name != "__main__"))
        return int(self._stdout.write(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stdout, name)


def _serve() -> None:
    from ork.cli.main import main

    sys.argv = ["ork", "serve", "--on-request", "--port", "0"]
    main()


def _fork_on_request(connection: socket.socket) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    os.putenv("GRPC_ENABLE_FORK_SUPPORT", "0")
    for name in sys.stdin.read().split("\n"):
        with suppress(ImportError):  # a part of a module that is no module itself
            importlib.import_module(name)
    assert threading.active_count() == 1, threading.enumerate()
    connection.sendall(b"+")
    while True:
        length, rights, _, _ = connection.recvmsg(4, socket.CMSG_SPACE(2 * array.array("i").itemsize))
        if not length:
            return
        (_, _, given) = rights[0]
        files = array.array("i")
        files.frombytes(given)
        folder, *environment = _received(connection, int.from_bytes(length, "big")).decode().split("\0")
        pid = os.fork()
        if pid == 0:
            connection.close()
            _become_instance(folder, environment, files)
        for file in files:
            os.close(file)
        connection.sendall(pid.to_bytes(4, "big"))


def _become_instance(folder: str, environment: Sequence[str], files: Sequence[int]) -> None:
    code = 1
    try:
        os.dup2(files[0], 1)
        os.dup2(files[1], 2)
        for file in files:
            os.close(file)
        # New ones, because they may have been files, which can be read back, and are pipes now.
        sys.stdout, sys.stderr = (os.fdopen(file, "w", encoding="utf-8", closefd=False) for file in (1, 2))
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update({name: value for name, _, value in (each.partition("=") for each in environment)})
        _serve()
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        _fork_on_request(socket.socket(fileno=int(sys.argv[1])))
    else:
        sys.stdout = _Noting(sys.stdout)
        _serve()

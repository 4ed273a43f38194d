"""A datagram socket on which local workers report new statuses. Only a hint: the documents are authoritative."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from binascii import crc32
from collections.abc import Callable, Mapping
from functools import cache

from ork.executors import processes

_LONGEST_ADDRESS = 100  # the system allows 107 bytes
_MAX_AT_ONCE = 512
_DEFAULT_FOLDER = "/tmp"


class StatusSocket:
    """The socket, in a folder of its own that only this user can enter."""

    def __init__(self, folder: str | None = None, report: Callable[[str], None] = lambda _why: None) -> None:
        self._report = report  # called with the reason if no socket can be created
        self._folder: str | None = None
        self._socket: socket.socket | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wanted_folder = folder

    @property
    def address(self) -> str | None:
        """The path, created on first use. None if no socket can be created: then only the ends of processes are noticed."""
        if self._socket is None:
            try:
                self._open()
            except OSError as error:
                self._report(error.strerror or str(error))
                return None
        return f"{self._folder}/news"

    def listen(self, listeners: Mapping[str, Callable[[bytes | None], None]]) -> None:
        """Call the listener of the attempt that each datagram names, in the running event loop."""
        if self._loop is None and self.address is not None and self._socket is not None:
            self._loop = asyncio.get_running_loop()
            self._loop.add_reader(self._socket, self._receive, listeners)

    def close(self) -> None:
        if self._socket is None:
            return
        if self._loop is not None:
            self._loop.remove_reader(self._socket)
        self._socket.close()
        self._socket = self._loop = None
        with contextlib.suppress(OSError):
            os.unlink(f"{self._folder}/news")
            os.rmdir(str(self._folder))

    def _open(self) -> None:
        # Without `tempfile`, whose import takes longer than a short run.
        parent = _short(self._wanted_folder) or _DEFAULT_FOLDER
        remove_leftovers(parent)
        self._folder = f"{parent}/{_own_prefix()}{os.urandom(4).hex()}"
        os.mkdir(self._folder, 0o700)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.bind(f"{self._folder}/news")

    def _receive(self, listeners: Mapping[str, Callable[[bytes | None], None]]) -> None:
        for _ in range(_MAX_AT_ONCE):
            if self._socket is None:
                return
            try:
                data = self._socket.recv(4096)
            except OSError:
                return
            listener = listeners.get(data.decode("utf-8", "replace"))
            if listener is not None:
                listener(None)


def _short(folder: str | None) -> str | None:
    """The wanted folder, unless an address in it would be too long for the system."""
    if folder is None or len(os.fsencode(folder)) + len(f"/{_own_prefix()}12345678/news") > _LONGEST_ADDRESS:
        return None
    os.makedirs(folder, mode=0o700, exist_ok=True)
    return folder


@cache
def remove_leftovers(parent: str) -> None:
    """Remove the folders of killed processes. A folder whose owner may be alive is kept."""
    with contextlib.suppress(OSError):
        for name in os.listdir(parent):
            if name.startswith("ork-") and _is_left_behind(name):
                folder = f"{parent}/{name}"
                with contextlib.suppress(OSError):
                    os.unlink(f"{folder}/news")
                with contextlib.suppress(OSError):
                    os.rmdir(folder)


def _own_prefix() -> str:
    """Identifies the owning process uniquely, and is short enough for a socket address."""
    pid = os.getpid()
    return f"ork-{_machine()}-{_boot()}-{processes.pid_namespace()}-{pid}-{processes.process_start_time(pid) or 0}-"


def _is_left_behind(name: str) -> bool:
    try:
        _, machine, boot, namespace, pid, start, _ = name.split("-")
        owner = int(namespace), int(pid), int(start)
    except ValueError:
        return False
    if machine != _machine() or "unknown" in (boot, _boot()):
        return False
    if boot != _boot():
        return True
    return owner[0] == processes.pid_namespace() and not processes.is_alive(*owner[1:])


def _machine() -> str:
    return f"{crc32(processes.hostname().encode()):08x}"


def _boot() -> str:
    return processes.boot_id()[:8].replace("-", "")

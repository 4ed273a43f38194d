"""The fork servers of a scheduler: one per interpreter, shared by all executors."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping

from ork.executors.fork_server import ForkServer, fingerprint_of
from ork.fallbacks import FORK_SERVER, WORKER_POOL, Fallbacks

MAX_SERVERS = 8
_UNFIT_SECONDS = 60.0
_FINGERPRINT_SECONDS = 1.0


class ForkServers:
    """At most MAX_SERVERS at a time; the least recently used one is ended first."""

    def __init__(self, fallbacks: Fallbacks | None = None) -> None:
        self.fallbacks = fallbacks or Fallbacks(lambda _component, _reason: None)
        self.by_interpreter: dict[str, ForkServer] = {}
        self._failed: set[str] = set()  # interpreters whose last server did not start
        self._unfit: dict[str, float] = {}  # interpreters in which no server starts, and until when none is tried
        self._fingerprints: dict[str, tuple[object, object]] = {}
        self._variables: dict[bytes, bytes] = {}
        self._environ: dict[str, str] = {}

    def use_environment(self, variables: Mapping[bytes, bytes]) -> None:
        """Set the environment of new servers. Servers with another environment are outdated."""
        if variables != self._variables:
            self._variables = dict(variables)
            self._environ = {os.fsdecode(name): os.fsdecode(value) for name, value in variables.items()}

    def fingerprint(self, interpreter: str) -> object:
        """The fingerprint of files and environment of a current server: the same object while nothing changes. An outdated
        server is ended."""
        known = self._fingerprints.get(interpreter, (None, None))
        files = fingerprint_of(interpreter, int(time.monotonic() / _FINGERPRINT_SECONDS))
        if known[0] == files and known[1] is self._environ:
            return known
        self._fingerprints[interpreter] = files, self._environ
        if interpreter in self.by_interpreter:
            self.by_interpreter.pop(interpreter).retire()
        return self._fingerprints[interpreter]

    def server(self, interpreter: str, *, is_ahead: bool) -> ForkServer | None:
        """The running server, or a new one; None if none can be started."""
        server = self.by_interpreter.pop(interpreter, None) or self._started(interpreter, is_ahead=is_ahead)
        if server is not None:
            self.by_interpreter[interpreter] = server  # the last one: used most recently
        return server

    def has_failed(self, server: ForkServer) -> None:
        """The server did not work: do not start another one in that interpreter for a while."""
        self._unfit[server.interpreter] = time.monotonic() + _UNFIT_SECONDS
        self._note(server.interpreter, server.last_error())
        server.retire()

    def has_served(self, server: ForkServer) -> None:
        """One of its workers has reported."""
        server.has_served, server.last_worker_at = True, time.monotonic()
        self.fallbacks.clear(WORKER_POOL)
        self._failed.discard(server.interpreter)
        if not self._failed:
            self.fallbacks.clear(FORK_SERVER)

    def _note(self, interpreter: str, why: str) -> None:
        self._failed.add(interpreter)
        self.fallbacks.note(FORK_SERVER, f"none starts in {interpreter}, so each task starts an interpreter: {why}")

    def close(self) -> None:
        """End all servers after they have forked the workers that they already received."""
        for server in list(self.by_interpreter.values()):
            server.detach()

    def _started(self, interpreter: str, *, is_ahead: bool) -> ForkServer | None:
        if time.monotonic() < self._unfit.get(interpreter, 0.0):
            self.fallbacks.counts[FORK_SERVER] += 1
            return None
        while len(self.by_interpreter) >= MAX_SERVERS:
            self.by_interpreter.pop(next(iter(self.by_interpreter))).retire()
        try:
            return ForkServer(interpreter, self._environ, self._ended, is_ahead=is_ahead)
        except OSError as error:
            self._note(interpreter, error.strerror or str(error))
            return None

    def _ended(self, server: ForkServer) -> None:
        if self.by_interpreter.get(server.interpreter) is server:
            del self.by_interpreter[server.interpreter]

"""The fork servers of a scheduler, shared by all executors: one per interpreter, and preloaded copies of it.

A preloaded server belongs to a project, an interpreter and constant variables of tasks. It has the modules loaded that its
tasks import: the names come from `preload` in ork.yaml, or from what tasks were seen to import. A copy of the interpreter's
fork server imports them in the background (see `ork.worker.pool.preload`); tasks use it from the moment it is ready. A module
that cannot be preloaded is left out, and the reason is kept as a fallback note.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from ork.executors.executor import LaunchOrder
from ork.executors.fork_server import ForkServer, fingerprint_of, spawned
from ork.fallbacks import FORK_SERVER, PRELOADING, WORKER_POOL, Fallbacks

MAX_SECONDS = 30.0  # for all imports of one server
MAX_TRIES = 12  # servers that are started for the same names, each without another module
MAX_PROJECTS = 8
_AGAIN_SECONDS = 5.0  # from the end of one server to the next try
_NAME_BYTES = 256  # of the report file, see `ork.worker.pool.preload`
_MAX_REQUEST_BYTES = 60_000
Variables = tuple[tuple[str, str], ...]


class PreloadGroup(NamedTuple):
    """Tasks that can use the same preloaded modules."""

    interpreter: str
    root: str
    paths: tuple[str, ...]
    env: Variables  # the tasks' own variables, sorted


class _Preload:
    """The preloaded server of a project."""

    def __init__(self, project: PreloadGroup, names: Sequence[str]) -> None:
        self.project = project
        self.names = dict.fromkeys(names)
        self.left_out: dict[str, str] = {}  # modules and the reasons
        self.server: ForkServer | None = None  # ready
        self.starting: ForkServer | None = None
        self.pid = 0  # of the one that is starting
        self.refusal: dict[str, object] = {}  # its last message, if it gave up
        self.loaded: frozenset[str] = frozenset()  # top-level modules
        self.asked: tuple[str, ...] = ()  # the names that the last server was started with
        self.tries = 0
        self.not_before = 0.0
        self.folder_times: list[int | None] = []

    def wanted(self) -> tuple[str, ...]:
        """All names but those left out, which include the submodules of a package that is left out."""
        dotted = tuple(f"{name}." for name in self.left_out)
        return tuple(name for name in self.names if name not in self.left_out and not name.startswith(dotted))


class Preloads:
    """`configured` is `preload` of ork.yaml: None to follow the tasks' imports, nothing to switch preloading off.
    `base` returns the fork server of an interpreter, if it runs."""

    def __init__(
        self,
        base: Callable[[str], ForkServer | None],
        fallbacks: Fallbacks,
        configured: tuple[str, ...] | None = None,
        max_seconds: float = MAX_SECONDS,
    ) -> None:
        self._base = base
        self._fallbacks = fallbacks
        self._configured = configured
        self._max_seconds = max_seconds
        self._projects: dict[PreloadGroup, _Preload] = {}
        self._checked: dict[PreloadGroup, ForkServer | None] = {}

    def look_again(self) -> None:
        """Check the folders of each project again before its next task."""
        self._checked.clear()

    def server_for(self, interpreter: str, order: LaunchOrder) -> ForkServer | None:
        """The server that can fork the order's worker; None if there is none, or none is ready."""
        if order.env is None or self._configured == ():
            return None
        return self.server(PreloadGroup(interpreter, order.root, order.paths, order.env))

    def server(self, project: PreloadGroup) -> ForkServer | None:
        """The server that is ready for tasks of the project; None if there is none yet."""
        if project not in self._checked:
            self._checked[project] = self._ready(project)
        return self._checked[project]

    def learn(self, project: PreloadGroup, names: Sequence[str]) -> None:
        """Tasks of the project were seen to import these modules."""
        if self._configured is None:
            preload = self._preload(project)
            preload.names |= dict.fromkeys(names)
            self._begin(preload)

    def begin(self, interpreter: str) -> None:
        """The fork server of the interpreter is there: start the servers that need it."""
        for preload in self._of(interpreter):
            self._begin(preload)

    def retire(self, interpreter: str) -> None:
        """End the servers of an interpreter whose files or environment have changed."""
        for preload in self._of(interpreter):
            self._forget(preload)

    def _of(self, interpreter: str) -> list[_Preload]:
        return [each for each in self._projects.values() if each.project.interpreter == interpreter]

    def close(self) -> None:
        for preload in list(self._projects.values()):
            self._forget(preload)

    def _preload(self, project: PreloadGroup) -> _Preload:
        """The entry of the project, as the most recently used one. The least recently used one is dropped if there are many."""
        preload = self._projects.pop(project, None) or _Preload(project, self._configured or ())
        while len(self._projects) >= MAX_PROJECTS:
            self._forget(next(iter(self._projects.values())))
        self._projects[project] = preload
        return preload

    def _forget(self, preload: _Preload) -> None:
        self._projects.pop(preload.project, None)
        self._checked.pop(preload.project, None)
        server, starting, preload.server, preload.starting = preload.server, preload.starting, None, None
        if server is not None:
            server.retire()
        if starting is not None:
            starting.kill(preload.pid)
        self._note()

    def _ready(self, project: PreloadGroup) -> ForkServer | None:
        if self._configured and project not in self._projects:
            self._preload(project)
        preload = self._projects.get(project)
        if preload is None:
            return None
        if preload.server is not None and _is_shadowed(preload):
            preload.server.retire()  # it starts again, and leaves out what is shadowed
        if preload.server is None:
            self._begin(preload)
        return preload.server

    def _begin(self, preload: _Preload) -> None:
        """Start a server, unless one is starting or the current one has everything."""
        wanted, now = preload.wanted(), time.monotonic()
        if not wanted or preload.starting is not None or now < preload.not_before:
            return
        if preload.server is not None and set(wanted) <= set(preload.asked):
            return
        base, request = self._base(preload.project.interpreter), _request(preload.project, wanted)
        if base is None or len(request) > _MAX_REQUEST_BYTES:
            return
        preload.asked, preload.pid, preload.refusal = wanted, 0, {}
        preload.folder_times = _folder_times(preload.project)
        try:
            server = ForkServer(
                preload.project.interpreter,
                base.preloaded(request),
                partial(self._ended, preload),
                partial(self._on_message, preload),
            )
        except OSError:
            preload.not_before = now + _AGAIN_SECONDS
            return
        preload.starting = server
        asyncio.get_running_loop().call_later(self._max_seconds, self._give_up, preload, server)

    def _on_message(self, preload: _Preload, server: ForkServer, message: bytes) -> None:
        try:
            content = json.loads(message)
        except ValueError:  # it is cut off: many names, or names of any length
            self._refuse(preload, server, "", "the report of their imports is too long")
            return
        if "pid" in content:
            preload.pid = content["pid"]
        elif "left_out" in content:
            preload.refusal = content  # it ends now
        elif preload.starting is server:
            self._is_ready(preload, server, content["loaded"], content["failed"])

    def _is_ready(
        self, preload: _Preload, server: ForkServer, loaded: Sequence[str], failed: Mapping[str, str]
    ) -> None:
        old, preload.server, preload.starting = preload.server, server, None
        preload.loaded, preload.tries = frozenset(loaded), 0
        server.has_served = True
        # A submodule that cannot be imported by its name is no loss: it comes with its package.
        preload.left_out |= {name: why for name, why in failed.items() if "." not in name or self._configured}
        if old is not None:
            old.retire()
        self._checked.pop(preload.project, None)
        self._note()
        self._begin(preload)  # tasks may have imported more in the meantime

    def _ended(self, preload: _Preload, server: ForkServer) -> None:
        self._checked.pop(preload.project, None)
        if preload.server is server:
            preload.server = None
        if preload.starting is not server:
            return
        preload.starting = None
        name, why = _reason(preload, server)
        preload.tries += 1
        if not why or preload.tries >= MAX_TRIES:
            preload.not_before = time.monotonic() + _AGAIN_SECONDS
            return
        first = [each for each in preload.refusal.get("first", ()) if each not in preload.names]  # type: ignore[attr-defined]
        if first:
            # A package with threads that survive a fork: imported by itself first, its threads are attributed to it.
            preload.names = dict.fromkeys([*first, *preload.names])
        elif name:
            preload.left_out[name] = why
        else:
            preload.left_out |= dict.fromkeys(preload.names, why)
        self._note()
        self._begin(preload)

    def _give_up(self, preload: _Preload, server: ForkServer) -> None:
        if preload.starting is server:
            self._refuse(preload, server, _current_name(server), f"its import took more than {self._max_seconds:g} s")

    def _refuse(self, preload: _Preload, server: ForkServer, name: str, why: str) -> None:
        """End a server that is starting; the next one is without this module."""
        preload.refusal = {"left_out": name, "why": why}
        server.kill(preload.pid)

    def _note(self) -> None:
        """Publish the reasons of all modules that are left out."""
        reasons: dict[str, list[str]] = {}
        for preload in self._projects.values():
            for name, why in preload.left_out.items():
                reasons.setdefault(f"{preload.project.root}: {why}", []).append(name)
        if reasons:
            shown = "; ".join(f"{', '.join(names[:3])} in {why}" for why, names in reasons.items())
            self._fallbacks.note(PRELOADING, f"each task imports {shown}")
        else:
            self._fallbacks.clear(PRELOADING)


def _request(project: PreloadGroup, names: Sequence[str]) -> bytes:
    content = {"names": names, "root": project.root, "folders": _folders(project), "env": dict(project.env)}
    return json.dumps(content).encode()


def _folders(project: PreloadGroup) -> list[str]:
    return [project.root, *project.paths]


def _folder_times(project: PreloadGroup) -> list[int | None]:
    times: list[int | None] = []
    for folder in _folders(project):
        try:
            times.append(os.stat(folder).st_mtime_ns)
        except OSError:
            times.append(None)
    return times


def _is_shadowed(preload: _Preload) -> bool:
    """True if the project has come to have a file that a task would import instead of a module that is loaded."""
    times = _folder_times(preload.project)
    if times == preload.folder_times:
        return False
    preload.folder_times = times
    for folder in _folders(preload.project):
        try:
            entries = os.listdir(folder)
        except OSError:
            continue
        named = [entry for entry in entries if entry.removesuffix(".py") in preload.loaded]
        if any(entry.endswith(".py") or os.path.isfile(f"{folder}/{entry}/__init__.py") for entry in named):
            return True
    return False


def _current_name(server: ForkServer) -> str:
    """The module that the server was importing."""
    return os.pread(server.errors, _NAME_BYTES, 0).rstrip(b"\0").decode("utf-8", "replace")


def _reason(preload: _Preload, server: ForkServer) -> tuple[str, str]:
    """The module to leave out, and why; no reason if the server ended before it imported anything."""
    if preload.refusal:
        return str(preload.refusal["left_out"]), str(preload.refusal["why"])
    name = _current_name(server)
    return name, "its import ends the process" if name else ""


MAX_SERVERS = 8


_UNFIT_SECONDS = 60.0


_FINGERPRINT_SECONDS = 1.0


class ForkServers:
    """One server per interpreter, and preloaded copies of it. At most MAX_SERVERS at a time; the least recently used one is
    ended first. `preload`: see `Preloads`."""

    def __init__(self, fallbacks: Fallbacks | None = None, preload: tuple[str, ...] | None = None) -> None:
        self.fallbacks = fallbacks or Fallbacks(lambda _component, _reason: None)
        self.preloads = Preloads(self._served, self.fallbacks, preload)
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
        if known[0] is not None:
            self.preloads.retire(interpreter)
        if interpreter in self.by_interpreter:
            self.by_interpreter.pop(interpreter).retire()
        return self._fingerprints[interpreter]

    def server(self, interpreter: str, *, is_ahead: bool) -> ForkServer | None:
        """The running server, or a new one; None if none can be started."""
        server = self.by_interpreter.pop(interpreter, None) or self._started(interpreter, is_ahead=is_ahead)
        if server is not None:
            self.by_interpreter[interpreter] = server  # the last one: used most recently
        return server

    def _served(self, interpreter: str) -> ForkServer | None:
        """The running server, if one of its workers has reported: before that, the first task would wait for anything else."""
        server = self.by_interpreter.get(interpreter)
        return server if server is not None and server.has_served else None

    def has_failed(self, server: ForkServer) -> None:
        """The server did not work: do not start another one in that interpreter for a while."""
        self._unfit[server.interpreter] = time.monotonic() + _UNFIT_SECONDS
        self._note(server.interpreter, server.last_error())
        server.retire()

    def has_served(self, server: ForkServer) -> None:
        """One of its workers has reported."""
        is_first, server.has_served, server.last_worker_at = not server.has_served, True, time.monotonic()
        if is_first:
            self.preloads.begin(server.interpreter)
        self.fallbacks.clear(WORKER_POOL)
        self._failed.discard(server.interpreter)
        if not self._failed:
            self.fallbacks.clear(FORK_SERVER)

    def _note(self, interpreter: str, why: str) -> None:
        self._failed.add(interpreter)
        self.fallbacks.note(FORK_SERVER, f"none starts in {interpreter}, so each task starts an interpreter: {why}")

    def close(self) -> None:
        """End all servers after they have forked the workers that they already received."""
        self.preloads.close()
        for server in list(self.by_interpreter.values()):
            server.detach()

    def _started(self, interpreter: str, *, is_ahead: bool) -> ForkServer | None:
        if time.monotonic() < self._unfit.get(interpreter, 0.0):
            self.fallbacks.counts[FORK_SERVER] += 1
            return None
        while len(self.by_interpreter) >= MAX_SERVERS:
            self.by_interpreter.pop(next(iter(self.by_interpreter))).retire()
        try:
            return ForkServer(interpreter, spawned(interpreter, self._environ, is_ahead=is_ahead), self._ended)
        except OSError as error:
            self._note(interpreter, error.strerror or str(error))
            return None

    def _ended(self, server: ForkServer) -> None:
        if self.by_interpreter.get(server.interpreter) is server:
            del self.by_interpreter[server.interpreter]

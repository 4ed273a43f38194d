"""Imports modules into a copy of the fork server, which then forks workers that have them already.

The copy is the trial: it serves only if its imports left nothing behind that a fork would lose or share. Otherwise it reports the
module and ends, and the executor asks for another copy without that module. So what was tried is what is used.

In: a request of the executor (JSON: names, root, folders, env). Out: messages on the server's socket, and in the first bytes of
the `report` file the module that is being imported, for the case that the process crashes or hangs.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import gc
import os
import sys

from ork.objects.json_text import dumps, own_json
from ork.system import system
from ork.worker.call import packages
from ork.worker.call.environment import hide_own_variables, inherited
from ork.worker.call.packages import FORK_SAFE, hidden_modules
from ork.worker.call.surroundings import LoggingSetUp, flush_streams
from ork.worker.system import processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

NAME_BYTES = 256  # of the report file; the rest is what modules print
MAX_REASON = 300  # characters; the message of an exception may have any length
_SIGKILL = 9
_OF_THREADS = 0b11 << 31  # signals 32 and 33, which the C library handles as soon as there are threads
_THREADS, _DESCRIPTORS = "/proc/self/task", "/proc/self/fd"


def preload(request: bytes, executor: int, report: int, parent: int) -> bool:
    """Import what the request names and report the result to the socket `executor`. False if this process must not serve."""
    system.die_with_parent(parent)
    os.write(executor, dumps({"pid": os.getpid()}).encode())
    order: dict[str, Any] = own_json(request)
    inherited()  # what commands inherit is read before any module can change it
    hide_own_variables()  # modules see the environment of a task: no credentials of the object store
    os.environ.update(order["env"])
    os.chdir(order["root"])
    null = os.dup(1)
    os.lseek(report, NAME_BYTES, os.SEEK_SET)
    for descriptor in (1, 2):
        os.dup2(report, descriptor)
    python_path = [folder for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder]
    reply = _imported(order["names"], [*order["folders"], *python_path], report)
    for descriptor in (1, 2):
        os.dup2(null, descriptor)
    os.close(null)
    os.close(report)
    os.write(executor, dumps(reply).encode())
    if "left_out" in reply:
        return False
    system.survive_parent()  # from now on it does not depend on the server it was forked from
    gc.collect()
    gc.freeze()
    return True


def _imported(names: Sequence[str], folders: Sequence[str], report: int) -> dict[str, Any]:
    """The reply: the top-level modules that were loaded and the names that failed, or the module to leave out."""
    from importlib import import_module

    if not packages.are_used():
        return {"left_out": "", "why": "starting this interpreter with its site-packages leaves threads or open files"}
    sys.meta_path.insert(0, LoggingSetUp())
    known, failed = len(sys.modules), {}
    traces = _Traces(folders, report)
    # Packages with threads of their own come first, so that no thread is attributed to a module that only uses them.
    for name in sorted(names, key=lambda name: _top(name) not in FORK_SAFE):
        if name in sys.modules:
            continue
        before = len(sys.modules)
        os.pwrite(report, name.encode()[: NAME_BYTES - 1].ljust(NAME_BYTES, b"\0"), 0)
        try:
            import_module(name)
        except BaseException as error:
            failed[name] = f"it raised {type(error).__name__}: {error}"[:MAX_REASON]
        new = {_top(each) for each in list(sys.modules)[before:]}
        why = traces.since(new, may_start_threads=_top(name) in FORK_SAFE)
        why = why or _generator_in(list(sys.modules.values())[before:])
        if why is not None:
            traces.kill_children()
            return {"left_out": name, "why": why, "first": sorted(new & FORK_SAFE)}
    traces.close()
    return {"loaded": sorted({_top(each) for each in list(sys.modules)[known:]}), "failed": failed}


class _Traces:
    """What imports may leave behind."""

    def __init__(self, folders: Sequence[str], report: int) -> None:
        self._folders = folders
        self._report = report
        self._threads = len(os.listdir(_THREADS))
        self._descriptors = _descriptors()
        self._environ = dict(os.environ)
        self._handlers = _handlers()
        system.set_subreaper(True)  # so that processes of processes are found, too

    def since(self, new: set[str], *, may_start_threads: bool) -> str | None:
        """Why the module that was imported last cannot be preloaded; None if it can. `new`: top-level modules that it loaded."""
        shadowed = [file for folder in self._folders for file in hidden_modules(folder, new).values()]
        if shadowed:
            return f"it imports a module that {shadowed[0]} of the project shadows"
        if len(sys._current_frames()) > 1:
            return "it starts a thread"
        threads, self._threads = self._threads, len(os.listdir(_THREADS))
        if self._threads > threads and not may_start_threads:
            return "it starts a native thread, and is not known to survive a fork"
        if processes.has_children():
            return "it starts a process"
        if _descriptors() != self._descriptors:
            return "it leaves a file or a socket open"
        changed = [name for name, value in self._environ.items() if os.environ.get(name) != value]
        if changed:
            return f"it changes the environment variable {changed[0]}"
        if _handlers() != self._handlers:
            return "it changes the handling of signals"
        flush_streams()
        if os.lseek(self._report, 0, os.SEEK_CUR) > NAME_BYTES:
            return "it prints when it is imported"
        return None

    def kill_children(self) -> None:
        """End the processes that the last module started."""
        for pid in system.descendants(b"none"):
            try:
                os.kill(pid, _SIGKILL)
            except OSError:
                continue

    def close(self) -> None:
        system.set_subreaper(False)


def _generator_in(modules: Sequence[object]) -> str | None:
    """Why a module with a random generator of its own cannot be preloaded: all tasks would draw the same numbers. The global
    ones of Python, NumPy and PyTorch are seeded again after a fork."""
    random, numpy, torch = (sys.modules.get(name) for name in ("random", "numpy.random", "torch"))
    kinds = [getattr(random, "Random", None), *(getattr(numpy, name, None) for name in ("Generator", "RandomState"))]
    kinds.append(getattr(torch, "Generator", None))
    # The global functions of Python and NumPy are methods of the global generators.
    global_ones = [getattr(getattr(module, "random", None), "__self__", None) for module in (random, numpy)]
    global_ones.append(getattr(torch, "default_generator", None))
    for module in modules:
        for value in list(getattr(module, "__dict__", {}).values()):
            if any(type(value) is kind for kind in kinds) and not any(value is each for each in global_ones):
                return f"{getattr(module, '__name__', 'it')} has a random generator, whose state tasks would share"
    return None


def _top(name: str) -> str:
    return name.partition(".")[0]


def _descriptors() -> set[tuple[str, str]]:
    found = set()
    for name in os.listdir(_DESCRIPTORS):
        try:
            found.add((name, os.readlink(f"{_DESCRIPTORS}/{name}")))
        except OSError:
            continue  # the listing's own
    return found


def _handlers() -> list[object]:
    """Python's handlers of all signals, and the signals that native code handles or ignores."""
    with open("/proc/self/status", "rb") as file:
        masks = [int(line.split()[1], 16) for line in file if line.startswith((b"SigIgn", b"SigCgt"))]
    native = [mask & ~_OF_THREADS for mask in masks]
    return [*(_signal.getsignal(number) for number in sorted(_signal.valid_signals())), *native]

"""A process that calls one function after the other (`isolation: shared`): nothing keeps them apart.

It stays only as long as nothing was left behind that the next one could suffer from as far as that can be seen: after
a failure, with a thread or a process still running, or with code that has changed on the disk, another takes its place.
"""

from __future__ import annotations

import os
import sys

from ork.objects.local import LocalObjects
from ork.worker.ahead import time_of
from ork.worker.environment import inherited
from ork.worker.invoke import Call, enter, finish_as_the_interpreter_would, flush_streams, read_order, use_streams
from ork.worker.loading import load_function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

    from ork.worker.bound import Bindings
    from ork.worker.mark import Mark

MOST_CALLS = 1000


def serve_functions(orders: int, answer: int, mark: Mark | None) -> NoReturn:
    """Ends the process when there are no more orders, or when it should not take another."""
    use_streams()
    place = _Place()
    for number in range(1, MOST_CALLS + 1):
        order = read_order(orders)
        if order is None:
            break
        if mark is not None:
            mark.write(order["spec"]["attempt"])
        call = SharedCall(
            LocalObjects(order["root"], order["spec"]["durability"]), order["folder"], order["spec"], place
        )
        call.perform()
        call.loaded = place.new_files(order["spec"]["root"])
        stays = number < MOST_CALLS and call.is_well and not _has_company()
        if not stays:
            finish_as_the_interpreter_would()
        flush_streams()
        if mark is not None and stays:
            mark.write("")
        call.reply(answer, stays=stays)
        if not stays:
            os._exit(call.exit_code)
    finish_as_the_interpreter_would()
    os._exit(0)


class _Place:
    """What all calls share: the environment the process came with, its streams and import path, functions it knows."""

    def __init__(self) -> None:
        self.environ = inherited()
        self.functions: dict[tuple[str | None, str | None, str], Callable[..., Any]] = {}
        self._streams = sys.stdout, sys.stderr
        self._path: list[str] = []
        self._known = set(sys.modules)

    def settled(self) -> None:
        """As the first call found it, after its own settling in."""
        self._path = list(sys.path)

    def restore(self) -> bool:
        """Undoes what a call may have done to what all share; False if none has settled in yet."""
        if not self._path:
            return False
        sys.path[:] = self._path
        self._restore_environment()
        sys.stdout, sys.stderr = self._streams
        sys.argv = [""]
        return True

    def _restore_environment(self) -> None:
        present = dict(os.environ)
        # Where it is different: each change is a call of the system's library, and most variables stay.
        for name in present.keys() - self.environ.keys():
            del os.environ[name]
        for name, value in self.environ.items():
            if present.get(name) != value:
                os.environ[name] = value

    def new_files(self, root: str) -> dict[str, int | None]:
        """Files of the project that were loaded since the last time, with their times."""
        if len(sys.modules) == len(self._known):
            return {}
        modules = [sys.modules[name] for name in set(sys.modules) - self._known]
        self._known = set(sys.modules)
        files = [getattr(module, "__file__", None) or "" for module in modules]
        return {file: time_of(file) for file in files if file.startswith(root + "/")}


class SharedCall(Call):
    """The same call as in a process of its own, but for what is there already."""

    def __init__(self, objects: LocalObjects, folder: str, spec: dict[str, Any], place: _Place) -> None:
        super().__init__(objects, folder, spec, place.environ)
        self._place = place

    @property
    def is_well(self) -> bool:
        return not (self.has_failed or self.has_exited or self.exit_code)

    def settle(self, bindings: Bindings) -> None:
        if self._place.restore():
            enter(self._spec, bindings)
        else:
            super().settle(bindings)
            self._place.settled()

    def load(self) -> Callable[..., Any]:
        spec = self._spec
        wanted = spec["file"], spec["module"], spec["function"]
        if wanted not in self._place.functions:
            self._place.functions[wanted] = load_function(spec["root"], *wanted)
        return self._place.functions[wanted]


def _has_company() -> bool:
    """Whether a thread or a process that the function started still runs."""
    if "threading" in sys.modules and sys.modules["threading"].active_count() > 1:
        return True
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return len(os.listdir("/proc/self/task")) > 1
    return True

"""A process that calls one function after the other (`isolation: shared`): nothing keeps them apart.

It stays only as long as nothing was left behind that the next one could suffer from as far as that can be seen: after
a failure, with a thread or a process still running, or with code that has changed on the disk, another takes its place.
"""

from __future__ import annotations

import os
import sys

from ork.objects.local import LocalObjects
from ork.worker.ahead import time_of
from ork.worker.environment import additions, hidden_names, inherited
from ork.worker.invoke import (
    Call,
    enter_folder,
    finish_as_the_interpreter_would,
    flush_streams,
    read_order,
    use_packages,
    use_streams,
)
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
        call = SharedCall(LocalObjects(order["root"], order["spec"]["durability"]), order["stem"], order["spec"], place)
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
        self._set: dict[str, str] | None = None  # variables of the last task
        self._left: dict[bytes, bytes] = {}  # all variables, as they were left to it

    def settled(self) -> None:
        """As the first call found it, after its own settling in."""
        self._path = list(sys.path)

    def restore(self) -> bool:
        """Undoes what a call may have done to what all share; False if none has settled in yet."""
        if not self._path:
            return False
        sys.path[:] = self._path
        sys.stdout, sys.stderr = self._streams
        sys.argv = [""]
        return True

    def use_environment(self, spec: dict[str, Any], bindings: Bindings) -> None:
        """Each change is a call of the system's library, and between two tasks of a workflow most variables stay."""
        if self._set is None or _variables() != self._left:
            self._restore_environment()
        before, self._set = self._set or {}, additions(spec, self.environ, bindings)
        for name in before.keys() - self._set.keys():
            _set(name, self.environ.get(name))
        for name, value in self._set.items():
            if before.get(name) != value:
                os.environ[name] = value
        self._left = _variables()

    def _restore_environment(self) -> None:
        """As it came, but without what is not for tasks."""
        hidden = hidden_names({"inputs": None, "env": {}}, self.environ)
        for name in set(os.environ).difference(self.environ).union(hidden):
            _set(name, None)
        for name in self.environ.keys() - set(hidden):
            if os.environ.get(name) != self.environ[name]:
                os.environ[name] = self.environ[name]
        self._set = None

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

    def __init__(self, objects: LocalObjects, stem: str, spec: dict[str, Any], place: _Place) -> None:
        super().__init__(objects, stem, spec, place.environ)
        self._place = place

    @property
    def is_well(self) -> bool:
        return not (self.has_failed or self.has_exited or self.exit_code)

    def settle(self, bindings: Bindings) -> None:
        is_first = not self._place.restore()
        self._place.use_environment(self._spec, bindings)
        enter_folder(self._spec["root"])
        if is_first:
            use_streams()
            use_packages(self._spec["root"])
            self._place.settled()

    def load(self) -> Callable[..., Any]:
        spec = self._spec
        wanted = spec["file"], spec["module"], spec["function"]
        if wanted not in self._place.functions:
            self._place.functions[wanted] = load_function(spec["root"], *wanted)
        return self._place.functions[wanted]


def _variables() -> dict[bytes, bytes]:
    """All of them, as the system's library has them: those of `os.environ` are made anew whenever they are asked for."""
    return dict(os.environ._data)  # type: ignore[attr-defined]


def _set(name: str, value: str | None) -> None:
    if value is not None:
        os.environ[name] = value
    elif name in os.environ:
        del os.environ[name]


def _has_company() -> bool:
    """Whether a thread or a process that the function started still runs."""
    if "threading" in sys.modules and sys.modules["threading"].active_count() > 1:
        return True
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return len(os.listdir("/proc/self/task")) > 1
    return True

"""The process that forks the processes of tasks, beside a reusable worker.

After a fork both processes pay for every page they write to. So the worker, which does everything around an attempt, does not
fork; this process does, and hardly anything else. The process of the next task is forked before the task is known. It is in the
project's folder, has the import path set, and waits for its order.
"""

from __future__ import annotations

import gc
import os

from ork.worker.call import packages
from ork.worker.call.environment import hide_own_variables
from ork.worker.call.loading import make_ready, time_of
from ork.worker.call.packages import hidden_modules
from ork.worker.call.surroundings import use_packages, use_streams
from ork.worker.call.task_process import make_orders, objects_at, send, wait_and_call
from ork.worker.supervise.log import has_words
from ork.worker.supervise.process import Child, become_child_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, NoReturn

    from ork.objects.attempt_documents import AttemptDocuments
    from ork.worker.system.processes import AttemptTag

_KILLED = 9
_CHUNK = 4096
_SAME_FILE = b"."


class TaskForkServer(Child):
    """A task fork server, as its worker sees it. `ends` receives the wait status of each task process. OSError if no process
    can be created."""

    stays = True

    def __init__(self, tag: AttemptTag, root: str, objects: str, paths: Sequence[str] = ()) -> None:
        orders, self._orders = make_orders()
        go, self._go = os.pipe()
        self.ends, end = os.pipe()
        self._objects = objects  # the store that most likely has the documents of its tasks
        self._folder_times, self._hidden = _times_of(root, paths), _hidden_in(root, paths)
        self._compiled: object = None  # the file that it has compiled, and its time
        try:
            super().__init__(lambda answer: self._serve(orders, answer, go, end, tag, root, paths))
        finally:
            for descriptor in (orders, go, end):
                os.close(descriptor)
        self.root, self.paths = root, list(paths)
        self._has_next = False

    def make_next(self, file: str | None) -> None:
        """Fork the process of the next task, whose function is most likely in that file. If that fails, `give` notices it."""
        self._has_next = True
        try:
            os.write(self._go, self._file_message(file))
        except BrokenPipeError:
            return

    def _file_message(self, file: str | None) -> bytes:
        """The file to compile, if it is not the last one or has changed. The task process compares the source again, so a
        mistake here costs time only."""
        found = file and (file, time_of(f"{self.root}/{file}"))
        if not file or found == self._compiled:
            return _SAME_FILE
        self._compiled = found
        return os.fsencode(file)[:_CHUNK]

    def is_fit_for(self, spec: dict[str, Any]) -> bool:
        """False for another project, for variables that the interpreter reads, and if files that shadow standard modules
        have come or gone."""
        if (self.root, self.paths) != (spec["root"], spec["paths"]):
            return False
        if spec["env"] and any(name.startswith("PYTHON") for name in spec["env"]):
            return False
        now = _times_of(spec["root"], spec["paths"])
        if now != self._folder_times and _hidden_in(spec["root"], spec["paths"]) != self._hidden:
            return False
        self._folder_times = now
        return True

    def give(self, objects: AttemptDocuments, spec: dict[str, Any]) -> bool:
        if not self._has_next:
            self.make_next(spec["file"] if spec["kind"] == "python" else None)
        self._has_next = False
        if has_words(self.ends):
            return False  # the process ended while it waited
        return send(self._orders, {"objects": objects.url, "spec": spec})

    def read_end(self) -> int:
        """The wait status of the task process, once `ends` is readable."""
        word = os.read(self.ends, _CHUNK)
        if not word:
            self._wait_for_death()
        return int(word) if word else _KILLED  # with its task fork server

    def _wait_for_death(self) -> None:
        """Wait until this process is a zombie: its pipes are closed a moment before its children become ours."""
        try:
            os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        except ChildProcessError:
            return

    def _close(self) -> None:
        super()._close()
        for descriptor in (self._orders, self._go, self.ends):
            os.close(descriptor)

    def _serve(
        self, orders: int, answer: int, go: int, end: int, tag: AttemptTag, root: str, paths: Sequence[str]
    ) -> NoReturn:
        tag.write(b"")
        use_streams()
        if packages.are_used():
            _settle(root, paths)
        objects_at(self._objects, "normal")
        me = os.getpid()
        gc.freeze()
        while file := os.read(go, _CHUNK):
            if file != _SAME_FILE:
                make_ready(root, os.fsdecode(file), paths)
            os.set_blocking(1, True)  # an earlier task, or a program it started, may have changed that
            pid = os.fork()
            if pid == 0:
                become_child_of(me)
                os.close(go)
                os.close(end)
                wait_and_call(orders, answer, tag)
            os.write(end, b"%d" % os.waitpid(pid, 0)[1])
        os._exit(0)


def _times_of(root: str, paths: Sequence[str]) -> list[int | None]:
    return [*map(time_of, (root, *paths))]


def _hidden_in(root: str, paths: Sequence[str]) -> list[dict[str, str]]:
    return [hidden_modules(folder) for folder in (root, *paths)]


def _settle(root: str, paths: Sequence[str]) -> None:
    """Do once what all tasks of the project need. The task's own process reports what is wrong with the folder."""
    hide_own_variables()
    try:
        os.chdir(root)
    except OSError:
        return
    use_packages(root, paths)

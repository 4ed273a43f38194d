"""The process that a function is called in, as its supervisor sees it.

A task fork server (`ork.worker.pool.task_fork_server`) is one that stays and forks another process for each order.
"""

from __future__ import annotations

import os

from ork.worker.call.imports_ahead import time_of
from ork.worker.supervise.process import fork_into, wait_or_kill

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

    from ork.objects.attempt_documents import AttemptDocuments
    from ork.worker.call.imports_ahead import Ahead

_waiting: Child | None = None


class Child:
    """What `body` does in a process of its own, with a descriptor for its replies. OSError if none can be made.

    One that `stays` forks another process for each function, and `ends` tells how that one ended.
    Standard output and standard error are one pipe, `printed`; `source` is where answers come from, a line each."""

    stays = False
    ends = -1

    def __init__(
        self,
        body: Callable[[int], NoReturn],
        *,
        ahead: Ahead | None = None,
        confine: Callable[[tuple[int, ...]], None] | None = None,
    ) -> None:
        self.root = ahead.root if ahead else None  # the project it has settled in
        self.paths = ahead.paths if ahead else []  # more folders of it to import from
        self.files: dict[str, int | None] = {}  # that it has loaded, and their times
        self._ahead = ahead
        if ahead is not None:
            # A file that comes or goes could hide what was imported; it is seen by the folder's own time.
            folders = (ahead.root, *ahead.paths)
            self.files = {**ahead.files, **{folder: time_of(folder) for folder in folders}}
        self.source, answer = os.pipe()
        self.printed, speak = os.pipe()

        def begin() -> NoReturn:
            self._close()
            os.dup2(speak, 1)
            os.dup2(speak, 2)
            if confine is not None:
                confine((answer,))
            body(answer)

        try:
            self.pid = fork_into(begin)
        except OSError:
            self._close()
            raise
        finally:
            for descriptor in (answer, speak):
                os.close(descriptor)
        for descriptor in (self.source, self.printed):
            os.set_blocking(descriptor, False)

    def is_fit_for(self, spec: dict[str, Any]) -> bool:
        """Not if it has settled in another project, or has loaded what has changed since, or would load otherwise in
        the task's own environment."""
        if self.root is not None and (self.root != spec["root"] or self.paths != spec["paths"]):
            return False
        if self._ahead is not None and spec["env"]:
            return False
        return not self.files or all(time_of(file) == then for file, then in self.files.items())

    def give(self, _objects: AttemptDocuments, _spec: dict[str, Any]) -> bool:
        """Has the function called; False if the process had gone before it could begin, or takes no orders."""
        return False

    def read_end(self) -> int:
        """How the process of the function ended, as `wait` reports it."""
        return os.waitpid(self.pid, 0)[1]

    def dismiss(self) -> None:
        """Without an order to come it ends, with a moment for its exit functions."""
        self._close()
        wait_or_kill(self.pid)

    def close(self) -> None:
        """It has ended, and been waited for."""
        self._close()

    def _close(self) -> None:
        for descriptor in (self.source, self.printed):
            os.close(descriptor)


def keep(child: Child) -> None:
    """For the next function. There is at most one: all else below a shim belongs to its attempt."""
    global _waiting
    if _waiting is not None:
        dismiss_waiting()
    _waiting = child


def waiting() -> Child | None:
    return _waiting


def take_waiting(spec: dict[str, Any]) -> Child | None:
    """The one that waits, if it is fit; another one is sent away."""
    global _waiting
    child = _waiting
    if child is None or not child.is_fit_for(spec):
        dismiss_waiting()
        return None
    _waiting = None
    return child


def dismiss_waiting() -> None:
    global _waiting
    child, _waiting = _waiting, None
    if child is not None:
        child.dismiss()

"""A small process beside a worker that kills what is left in the worker's session if the worker is killed.

On Linux, functions run in forked processes, which ask the kernel to be killed with their parent. Commands of reusable workers are
spawned (`posix_spawn`), which is several times faster than a fork but cannot ask for that: the guard does it for them. On systems
without that request, every worker has a guard.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import os

from ork.objects import journal
from ork.system import system
from ork.worker.supervise import process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from ork.worker.system.processes import AttemptTag

_ROUNDS = 100
_SIGKILL = 9


class Guard:
    """Stands from when it is made, by a process that leads its session. OSError if no process can be made. `tag` is that of a
    reusable worker."""

    def __init__(self, tag: AttemptTag | None = None) -> None:
        watched, self._alive = os.pipe()
        process.private.add(self._alive)
        # It must not be, or become, a child of this process: all children belong to an attempt.
        was_subreaper = system.set_subreaper(False)
        try:
            _fork_twice(watched, tag)
        except OSError:
            process.private.discard(self._alive)
            os.close(self._alive)
            raise
        finally:
            system.set_subreaper(was_subreaper)
            os.close(watched)

    def dismiss(self) -> None:
        """End the guard: this process ends by itself and leaves nothing."""
        os.write(self._alive, b".")


def _fork_twice(watched: int, tag: AttemptTag | None) -> None:
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
        return
    try:
        if os.fork() == 0:
            _signal.set_wakeup_fd(-1)
            _signal.signal(_signal.SIGTERM, _signal.SIG_DFL)
            session = os.getsid(0)
            if tag is None:
                os.setsid()  # so that it does not count as a process of the attempt
            else:
                tag.write(b"")
            for descriptor in (*process.private, *journal.descriptors, *system.descriptors):
                os.close(descriptor)
            _stand(watched, session)
    finally:
        os._exit(0)


def _stand(watched: int, session: int) -> NoReturn:
    if not os.read(watched, 1):
        for _ in range(_ROUNDS):  # a process may start another before it is killed
            left = [pid for pid in system.members_of(session) if pid != os.getpid()]
            if not left:
                break
            for pid in left:
                _kill(pid)
    os._exit(0)


def _kill(pid: int) -> None:
    try:
        os.kill(pid, _SIGKILL)
    except OSError:
        return

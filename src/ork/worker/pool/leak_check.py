"""What a call in a shared process may leave behind: processes, threads and unread output; and how much CPU time calls take.

To ask the system costs more than most calls take. So it is asked first for the process or thread that was started last on this
machine: if that has not changed, the call started nothing.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import os
import time
from resource import RUSAGE_CHILDREN, getrusage

from ork.worker.supervise.log import has_words

LIGHT_SECONDS = 0.00015  # about what a task costs whoever asks for it
_OF_LATE = 8
_LAST_STARTED = "/proc/sys/kernel/ns_last_pid"
_LONGEST_NUMBER = 32
_THREADS, _ALONE = "/proc/self/task", 3


class Effort:
    """What tasks cost this process of late, with all that is done for them; not the time that it was kept waiting."""

    def __init__(self) -> None:
        self._spent: float | None = None
        self._usual = LIGHT_SECONDS / 2

    def is_light(self) -> bool:
        """To be asked after every call. The first ones load what the others need, and count for little; and one that takes
        long does not make all the others so."""
        before, self._spent = self._spent, time.process_time()
        if before is not None:
            taken = min(self._spent - before, 2 * LIGHT_SECONDS)
            self._usual += (taken - self._usual) / _OF_LATE
        return self._usual < LIGHT_SECONDS


class Starts:
    """Of processes and threads."""

    def __init__(self) -> None:
        try:
            self._descriptor = os.open(_LAST_STARTED, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._descriptor = -1  # then there may always have been some
        self._seen = b""

    def any_since(self) -> bool:
        """Whether there may have been any in this process since it was last asked."""
        try:
            before, self._seen = self._seen, os.pread(self._descriptor, _LONGEST_NUMBER, 0)
        except OSError:
            return True
        return self._seen != before


class LeakCheck:
    def __init__(self) -> None:
        self._printed = os.dup(1)  # whatever a function does to the descriptor itself
        self._seen = 0
        self._threads = os.open(_THREADS, os.O_RDONLY | os.O_CLOEXEC)

    def are_running(self) -> bool:
        """Whether a process that the function started still runs, or nobody has waited for it, or a thread."""
        return _has_children() or self._are_threads_left()

    def _are_threads_left(self) -> bool:
        """A folder has two links and one for each folder in it; a system that does not count them so is asked at length."""
        return os.stat(self._threads).st_nlink != _ALONE and len(os.listdir(self._threads)) > 1

    def may_be_elsewhere(self) -> bool:
        """Whether processes may have been left to the worker: a process that was started, and waited for, since this was last
        asked may have started some."""
        # Grows with every process below this one that has been waited for.
        before, self._seen = self._seen, getrusage(RUSAGE_CHILDREN).ru_minflt
        waits_for_children = _signal.getsignal(_signal.SIGCHLD) is _signal.SIG_DFL
        return self._seen != before or not waits_for_children

    def are_words(self) -> bool:
        """That nobody has read."""
        return has_words(self._printed)


def _has_children() -> bool:
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return False
    return True

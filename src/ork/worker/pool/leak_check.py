"""What a call in a shared process may leave behind: processes, threads and unread output; and how much CPU time calls take.

Looking for them takes longer than most calls. So the number of the process or thread that was started last on this machine is read
first: if it has not changed, the call started nothing.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import os
import sys
import time
from resource import RUSAGE_CHILDREN, getrusage

from ork.worker.call.packages import FORK_SAFE
from ork.worker.supervise.log import has_words
from ork.worker.system import processes

LIGHT_SECONDS = 0.00015  # about what a task costs the scheduler
_WEIGHT = 8
_LAST_STARTED = "/proc/sys/kernel/ns_last_pid"
_LONGEST_NUMBER = 32
_THREADS, _ONE_THREAD = "/proc/self/task", 3


class Effort:
    """A moving average of the CPU time per task in this process, including everything that is done for the task."""

    def __init__(self) -> None:
        self._spent: float | None = None
        self._usual = LIGHT_SECONDS / 2

    def is_light(self) -> bool:
        """True if tasks take little CPU time. Must be called after every call. The first calls load what the others need,
        so they do not count, and a single long one counts for little."""
        before, self._spent = self._spent, time.process_time()
        if before is not None:
            taken = min(self._spent - before, 2 * LIGHT_SECONDS)
            self._usual += (taken - self._usual) / _WEIGHT
        return self._usual < LIGHT_SECONDS


class Starts:
    """Notices starts of processes and threads."""

    def __init__(self) -> None:
        try:
            self._descriptor = os.open(_LAST_STARTED, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._descriptor = -1  # then `any_since` is always true
        self._seen = b""

    def any_since(self) -> bool:
        """False if this process certainly started none since the last call."""
        try:
            before, self._seen = self._seen, os.pread(self._descriptor, _LONGEST_NUMBER, 0)
        except OSError:
            return True
        return self._seen != before


class LeakCheck:
    """Threads that exist after the task's file was loaded belong to the modules that it imports, not to a task."""

    def __init__(self) -> None:
        self._printed = os.dup(1)  # a function may close or replace descriptor 1
        self._seen = 0
        self._tasks = os.open(_THREADS, os.O_RDONLY | os.O_CLOEXEC)
        self._threads: set[str] = set()  # that belong to no task
        self._python_threads = 1

    def note_threads(self) -> None:
        """The current threads belong to no task."""
        self._threads, self._python_threads = set(os.listdir(self._tasks)), len(sys._current_frames())

    def are_running(self) -> bool:
        """True if a process or a thread that the function started still runs, or is a zombie."""
        return processes.has_children() or self._are_threads_left()

    def _are_threads_left(self) -> bool:
        """Threads of fork-safe libraries, which start with their first call, do not count."""
        # A folder has two links and one for each folder in it. Where that is not so, the folder is read.
        if os.stat(self._tasks).st_nlink == _ONE_THREAD or self._threads.issuperset(os.listdir(self._tasks)):
            return False
        if len(sys._current_frames()) > self._python_threads or FORK_SAFE.isdisjoint(sys.modules):
            return True
        self.note_threads()
        return False

    def may_be_elsewhere(self) -> bool:
        """True if processes may have been left to the worker: a child that was started and waited for since the last call may
        have started some."""
        # Grows with every descendant that has been waited for.
        before, self._seen = self._seen, getrusage(RUSAGE_CHILDREN).ru_minflt
        waits_for_children = _signal.getsignal(_signal.SIGCHLD) is _signal.SIG_DFL
        return self._seen != before or not waits_for_children

    def has_output(self) -> bool:
        """True if there is output that the worker has not read."""
        return has_words(self._printed)

"""Starting the user's process, and putting into words how it ended."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import os
import time

from ork.objects import journal
from ork.worker.supervise.status import Ending, failed
from ork.worker.system import processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    import resource
    from collections.abc import Callable
    from typing import Any, NoReturn

    from ork.objects.attempt_documents import AttemptDocuments
    from ork.worker.supervise.log import Log

LEAVE_SECONDS = 1.0
TAIL_LINES = 10
_TAIL_BYTES = 8192
_TAIL_LINE_CHARACTERS = 500
_SIGKILL = 9

private: set[int] = set()  # descriptors that no child may keep open: others wait for their end


def fork_into(body: Callable[[], NoReturn]) -> int:
    """Runs `body` in a new process: a group of its own, ordinary signals, and it dies with its parent."""
    parent = os.getpid()
    # One that is asked to end before it is ready must not take that for a word to its parent, and forget it.
    _signal.pthread_sigmask(_signal.SIG_BLOCK, (_signal.SIGTERM,))
    try:
        pid = os.fork()
    except OSError:
        _signal.pthread_sigmask(_signal.SIG_UNBLOCK, (_signal.SIGTERM,))
        raise
    if pid:
        _signal.pthread_sigmask(_signal.SIG_UNBLOCK, (_signal.SIGTERM,))
        return pid
    try:
        become_child_of(parent)
        _signal.set_wakeup_fd(-1)
        _signal.signal(_signal.SIGTERM, _signal.SIG_DFL)
        _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)
        _signal.pthread_sigmask(_signal.SIG_UNBLOCK, (_signal.SIGTERM,))
        for descriptor in (*private, *journal.descriptors, *processes.descriptors):
            os.close(descriptor)
        body()
    except BaseException as error:
        # First in words that need no module: the user's folder may hide the one that prints tracebacks.
        os.write(2, f"the task's process could not go on: {type(error).__name__}: {error}\n".encode("utf-8", "replace"))
        import traceback

        traceback.print_exc()
    finally:
        # Never back into the parent's code, whatever happens.
        os._exit(1)


def become_child_of(parent: int) -> None:
    """In a process that was just forked: a group of its own, and it dies with its parent."""
    os.setpgid(0, 0)
    processes.die_with_parent(parent)


def has_waited(usage: resource.struct_rusage) -> bool:
    """Whether a process ever waited for anything but to be collected: if so, more of its kind at once than there are
    processors could get on faster."""
    return usage.ru_nvcsw > 1


def wait_or_kill(pid: int) -> None:
    """For a child that was told to end: it has a moment for its exit functions."""
    give_up_at = time.monotonic() + LEAVE_SECONDS
    while _is_alive(pid):
        if time.monotonic() > give_up_at:
            os.kill(pid, _SIGKILL)
            os.waitpid(pid, 0)
            return
        time.sleep(0.001)


def _is_alive(pid: int) -> bool:
    """Whether this child has neither ended nor been waited for."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == 0
    except ChildProcessError:
        return False


def ended_badly(wait_status: int, objects: AttemptDocuments, attempt: str, log: Log | None = None) -> Ending:
    """A non-zero exit or a signal, with the last lines of the log."""
    code = os.waitstatus_to_exitcode(wait_status)
    detail: dict[str, Any] = {"tail": log_tail(objects, attempt, log)}
    return failed("exit", in_words(code), detail, exit_code=code)


def ended_without_reply(wait_status: int, objects: AttemptDocuments, attempt: str, log: Log | None) -> Ending:
    """Of a function that never came to its end."""
    if wait_status == 0:
        detail = {"tail": log_tail(objects, attempt, log)}
        return failed("exit", "the process exited before the function returned", detail, exit_code=0)
    return ended_badly(wait_status, objects, attempt, log)


def in_words(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"killed by {_signal_name(-code)}"


def log_tail(objects: AttemptDocuments, attempt: str, log: Log | None = None) -> list[str]:
    """The last lines, also those that found no room on the disk yet; of a long line its end."""
    size = objects.log_size(attempt) or 0
    start = max(0, size - _TAIL_BYTES)
    data = objects.read_log(attempt, start, _TAIL_BYTES) + (log.unwritten() if log else b"")
    lines = data.decode("utf-8", "replace").split("\n")
    if lines and not lines[-1]:
        lines.pop()
    if start and len(lines) > 1:
        del lines[0]  # begins in the middle
    return [_end_of(line.replace("\0", "\ufffd")) for line in lines[-TAIL_LINES:]]


def _end_of(line: str) -> str:
    return line if len(line) <= _TAIL_LINE_CHARACTERS else "…" + line[1 - _TAIL_LINE_CHARACTERS :]


def _signal_name(number: int) -> str:
    if number == _SIGKILL:
        return "SIGKILL, out of memory?"
    from signal import Signals

    try:
        return Signals(number).name
    except ValueError:
        return f"signal {number}"

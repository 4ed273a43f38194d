"""The process that the user's code runs in, as its supervisor sees it: starts it, and describes how it ended.

A task fork server (`ork.worker.pool.task_fork_server`) is a child that stays and forks another process for each order.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import os
import time

from ork.errors import ObjectsError
from ork.objects import journal
from ork.system import system
from ork.worker.supervise.status import Ending, failed

TYPE_CHECKING = False
if TYPE_CHECKING:
    import resource
    from collections.abc import Callable
    from typing import Any, NoReturn

    from ork.objects.attempt_documents import AttemptDocuments
    from ork.worker.supervise.log import Log
    from ork.worker.supervise.status import Ending


LEAVE_SECONDS = 1.0
TAIL_LINES = 10
_TAIL_BYTES = 8192
_TAIL_LINE_CHARACTERS = 500
_SIGKILL = 9

private: set[int] = set()  # descriptors that children must close, because other processes wait for their end


def fork_into(body: Callable[[], NoReturn]) -> int:
    """Run `body` in a new process with its own group and default signals, which dies with its parent. Returns its pid."""
    parent = os.getpid()
    # A signal that arrives before the child is ready must not be handled by the parent's handler and lost.
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
        for descriptor in (*private, *journal.descriptors, *system.descriptors):
            os.close(descriptor)
        body()
    except BaseException as error:
        # First without any import: a user's file may shadow the module that prints tracebacks.
        os.write(2, f"the task's process could not go on: {type(error).__name__}: {error}\n".encode("utf-8", "replace"))
        import traceback

        traceback.print_exc()
    finally:
        # Never return into the parent's code.
        os._exit(1)


def become_child_of(parent: int) -> None:
    """Give a process that was just forked its own group, and let it die with its parent."""
    os.setpgid(0, 0)
    system.die_with_parent(parent)


def has_waited(usage: resource.struct_rusage) -> bool:
    """Whether a process ever waited for anything. If so, running more of them than there are processors may be faster."""
    return usage.ru_nvcsw > 1


def wait_or_kill(pid: int) -> None:
    """Wait a moment for a child that was asked to end, so that its exit functions can run; then kill it."""
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
    return failed("exit", exit_text(code), detail, exit_code=code)


def ended_without_reply(wait_status: int, objects: AttemptDocuments, attempt: str, log: Log | None) -> Ending:
    """The ending of a function whose process ended without a reply."""
    if wait_status == 0:
        detail = {"tail": log_tail(objects, attempt, log)}
        return failed("exit", "the process exited before the function returned", detail, exit_code=0)
    return ended_badly(wait_status, objects, attempt, log)


def exit_text(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"killed by {_signal_name(-code)}"


def log_tail(objects: AttemptDocuments, attempt: str, log: Log | None = None) -> list[str]:
    """The last lines of the log, including buffered ones; of a long line its end."""
    while log is not None and log.upload():
        continue
    start, data = 0, b""
    try:
        start = max(0, (objects.log_size(attempt) or 0) - _TAIL_BYTES)
        data = objects.read_log(attempt, start, _TAIL_BYTES)
    except ObjectsError:
        pass  # the failure can be reported without them
    data += log.unwritten() if log else b""
    lines = data.decode("utf-8", "replace").split("\n")
    if lines and not lines[-1]:
        lines.pop()
    if start and len(lines) > 1:
        del lines[0]  # it is incomplete
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


_waiting: Child | None = None


class Child:
    """A child process that runs `body`, which gets a descriptor for its replies. OSError if it cannot be created.

    A child that `stays` forks another process for each function, whose wait status it writes to `ends`.
    Standard output and standard error are one pipe, `printed`; replies are read from `source`, one line each."""

    stays = False
    ends = -1

    def __init__(
        self,
        body: Callable[[int], NoReturn],
        *,
        confine: Callable[[tuple[int, ...]], None] | None = None,
    ) -> None:
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

    def is_fit_for(self, _spec: dict[str, Any]) -> bool:
        """True if the process can call this task's function."""
        return True

    def give(self, _objects: AttemptDocuments, _spec: dict[str, Any]) -> bool:
        """Let the process call the function. False if the process has ended, or takes no orders."""
        return False

    def read_end(self) -> int:
        """The wait status of the process that called the function."""
        return os.waitpid(self.pid, 0)[1]

    def dismiss(self) -> None:
        """End the process, with a moment for its exit functions: no order will come."""
        self._close()
        wait_or_kill(self.pid)

    def close(self) -> None:
        """Close the pipes of a process that has ended and been waited for."""
        self._close()

    def _close(self) -> None:
        for descriptor in (self.source, self.printed):
            os.close(descriptor)


def keep(child: Child) -> None:
    """Keep the child for the next function. At most one is kept: all other children of a shim belong to its attempt."""
    global _waiting
    if _waiting is not None:
        dismiss_waiting()
    _waiting = child


def waiting() -> Child | None:
    """The child that is kept for the next function."""
    return _waiting


def take_waiting(spec: dict[str, Any]) -> Child | None:
    """The child that is kept, if it is fit for the task; one that is not is dismissed."""
    child = waiting()
    if child is None or not child.is_fit_for(spec):
        dismiss_waiting()
        return None
    return release_waiting()


def release_waiting() -> Child | None:
    """Return the child that is kept, and keep it no longer."""
    global _waiting
    child, _waiting = _waiting, None
    return child


def dismiss_waiting() -> None:
    child = release_waiting()
    if child is not None:
        child.dismiss()


def is_confined(spec: dict[str, Any]) -> bool:
    """Whether the attempt needs a new process: waiting and shared processes run as the worker's user, without limits."""
    # No function calls, because every attempt runs this. Specs of an earlier release have neither key.
    return ("task_user" in spec and spec["task_user"] is not None) or ("limits" in spec and spec["limits"] is not None)


def is_dbt(spec: dict[str, Any]) -> bool:
    """Whether the attempt is a dbt command, which a kept dbt may perform."""
    return spec["kind"] == "command" and spec["argv"][:1] == ["dbt"] and not is_confined(spec)

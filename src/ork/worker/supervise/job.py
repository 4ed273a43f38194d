"""Protocols of the shim: a job (the user's part of an attempt) and a host (a process that runs one shim after the other).

Only for readers and the type checker; never imported at run time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from ork.worker.supervise.log import Log
from ork.worker.supervise.status import Ending
from ork.worker.system.processes import AttemptTag, Signals


class Job(Protocol):
    """The user's part of an attempt: a process to start, pipes to read, and an ending."""

    def start(self, log: Log) -> Ending | int:
        """Returns the pid (0 if the task fork server waits for the process), or the ending if it could not be started."""
        ...

    def pipes(self) -> dict[int, Callable[[], bool]]:
        """Readers by descriptor. Each reads some data and returns whether more may come."""
        ...

    @property
    def reply(self) -> int:
        """The pipe that is read only at the end or when it is full; -1 if there is none."""
        ...

    @property
    def is_started(self) -> bool:
        """True if the process started before it was supervised."""
        ...

    @property
    def is_over(self) -> bool:
        """True if the function has returned; the process may stay for other attempts."""
        ...

    @property
    def leaves_nothing(self) -> bool:
        """True if it is over, with no process left and no data to read."""
        ...

    @property
    def fork_server(self) -> int:
        """Pid of the task fork server that forked the user's process and stays for others; 0 if there is none."""
        ...

    @property
    def main_status(self) -> int | None:
        """Wait status of the user's process, if a task fork server reported it."""
        ...

    @property
    def is_swift(self) -> bool:
        """Whether the user's process reported that it never waited for anything."""
        ...

    def ending(self, wait_status: int) -> Ending: ...

    def clean(self) -> None:
        """Close all descriptors and remove the task's temporary files."""
        ...


class Host(Protocol):
    """A process that runs one shim after the other, and receives stop requests on a control socket."""

    signals: Signals
    tag: AttemptTag
    descriptor: int

    def look(self) -> bool:
        """Read pending requests. False if no more can come."""
        ...

    def report_status(self, is_over: bool, document: bytes) -> None:
        """Report a status that was written. `is_over`: it is the last one of the attempt."""
        ...

    def is_guarded(self) -> bool:
        """Whether processes that are started from now on end with this process, even if it is killed."""
        ...

    def report_imports(self, spec: dict[str, Any], names: list[str]) -> None:
        """Reports the installed modules that a task imported."""
        ...

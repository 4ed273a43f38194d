"""Protocols of the shim: a job (the user's part of an attempt) and a host (a process that runs one shim after the other).

Only for readers and the type checker; never imported at run time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from ork.worker.supervise.log import Log
from ork.worker.supervise.status import Ending
from ork.worker.system.attempt_tag import AttemptTag
from ork.worker.system.processes import Signals


class Job(Protocol):
    """The user's part: a process to start, pipes to empty, and an ending to tell."""

    def start(self, log: Log) -> Ending | int:
        """The process's pid (0 if its task fork server looks after it), or why it could not be started."""
        ...

    def pipes(self) -> dict[int, Callable[[], bool]]:
        """Readers by descriptor; each takes some of what is there and says whether more may come."""
        ...

    @property
    def reply(self) -> int:
        """The pipe, if there is one, that need not be read before the end unless it is full, else -1."""
        ...

    @property
    def is_started(self) -> bool:
        """It was under way before anybody looked after it."""
        ...

    @property
    def is_over(self) -> bool:
        """All that was to be done is done, though the process stays for others."""
        ...

    @property
    def leaves_nothing(self) -> bool:
        """It is over, and it is known that no process is left of it, nor words to be read."""
        ...

    @property
    def fork_server(self) -> int:
        """The process, if there is one, that the user's was forked from and that stays for others, else 0."""
        ...

    @property
    def main_status(self) -> int | None:
        """How the user's process ended, if a task fork server tells."""
        ...

    @property
    def is_swift(self) -> bool:
        """Whether the user's process has told that it never waited for anything."""
        ...

    def ending(self, wait_status: int) -> Ending: ...

    def clean(self) -> None:
        """Leaves nothing open, and nothing on the disk that only the task needed."""
        ...


class Host(Protocol):
    """A process that has one shim after the other, and a door where requests to stop come in."""

    signals: Signals
    tag: AttemptTag
    descriptor: int

    def look(self) -> bool:
        """Takes in what is there; False when nobody will come any more."""
        ...

    def tell(self, is_over: bool, document: bytes) -> None: ...

    def is_guarded(self) -> bool:
        """Whether what is started from now on ends with this process, however that ends."""
        ...

    def learn(self, spec: dict[str, Any], imports: dict[str, Any] | None, *, is_quiet: bool) -> None:
        """What a function of the project imported; not quiet if doing so ahead left more than a waiting process."""
        ...

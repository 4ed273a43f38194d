"""What an executor promises. It performs; it decides nothing.

The attempt's documents are the truth about it. An executor only brings attempts to life, can say
whether something of one is still alive, and can end it; whatever it notices by itself (a process that exits) it
reports as on_status, which is a reason to look at them, never a result. What they say may come along with the
on_status, and is checked as if it had been read.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol, TypeAlias

from ork.model.ids import AttemptKey, RunId
from ork.model.record import Record
from ork.model.status import Status
from ork.model.task import Attempt
from ork.model.workflow import Isolation

# The attempt's status document, signed, as it lies in the object store (put there before it is told of); or, from an
# executor that has no worker to distrust, what such a document would say.
ReportedStatus: TypeAlias = bytes | Status


class StatusCallback(Protocol):
    """Something may have happened to the attempt. With `told` its status need not be read, nor its executor be asked
    whether it lives: on_status of its death comes by itself, and without `told`. Such on_status is always right, and takes away
    what was told before and not looked at yet."""

    def __call__(self, key: AttemptKey, told: ReportedStatus | None = None, /) -> None: ...


# The executor of attempts that wait for external jobs without a worker, whichever began them.
DEFERRED = "deferred"


class LaunchOrder(Record):
    """An attempt to start. Its signed spec is already in the object store; `spec` is the same as bytes (empty where nobody
    reads it, or the order is for something that has been started before).

    `token` reaches the worker through its environment, never through argv; `secrets` are environment
    variables by value that appear in no document. `interpreter` is the user's Python for python tasks.
    `isolation` says how the worker's process comes about, where the executor has a choice. `position`: if it is not 0,
    nobody had won its gate when it was made, and a worker need not look for that before this place (see `put_specs`).
    """

    attempt: Attempt
    token: str
    root: str
    secrets: tuple[tuple[str, str], ...] = ()
    interpreter: str | None = None
    isolation: Isolation | None = None
    spec: bytes = b""
    position: int = 0
    paths: tuple[str, ...] = ()  # the project's folders that tasks import from, after the root
    is_new: bool = False  # nobody was asked to start it before, so nobody can hold its gate


class NotStarted(Record):
    """The attempt could not be started. `final` when trying again cannot help."""

    attempt: AttemptKey
    why: str
    final: bool


class Presence(StrEnum):
    RUNNING = "running"  # something of it is alive
    ORPHANED = "orphaned"  # something of it is alive, but not the worker that would tell of its end
    GONE = "gone"  # nothing of it is alive, nor can come alive under this name
    LOST = "lost"  # gone with its machine (it rebooted): files may be older than the truth
    UNKNOWN = "unknown"  # cannot say: another machine, or out of reach


class ExecutorTraits(Record):
    """What a scheduler has to know about the attempts of an executor."""

    fences_itself: bool = False  # a worker ends its task when it cannot write a heartbeat for the fence time
    presence_is_heartbeat: bool = False  # RUNNING counts as a heartbeat: nothing else writes one
    needs_specs: bool = True  # somebody reads the specs of its attempts


CONTAINER_TRAITS = ExecutorTraits(presence_is_heartbeat=True)


class Executor(Protocol):
    """Executors inherit from this class: traits, `status_address`, `release` and `forget_run` have defaults."""

    traits: ExecutorTraits = ExecutorTraits()
    name: str

    def name_for(self, attempt: AttemptKey) -> str:
        """The external name: the same for the same attempt on the same machine and boot, different for any other."""
        ...

    async def start(self, orders: Sequence[LaunchOrder], on_status: StatusCallback) -> Sequence[NotStarted]:
        """Each attempt is on its way, or named in the answer.

        Repeatable: an attempt that is already there is not started again. `on_status` is called (in the event
        loop) whenever something may have happened to the attempt; at the latest when its process is gone.
        """
        ...

    async def find(self, attempts: Sequence[Attempt]) -> Sequence[Presence]:
        """For each attempt, in order, whether something of it is alive anywhere this executor can see."""
        ...

    async def watch(self, attempts: Sequence[Attempt], on_status: StatusCallback) -> None:
        """As if this process had started them: on_status when their processes are gone. For adopted attempts."""
        ...

    async def stop(self, attempts: Sequence[Attempt], *, at_once: bool) -> None:
        """Asks each attempt's worker to end its whole tree, gently first; with `at_once` kills all of it now.

        Returns without waiting for the end; `find` tells. An attempt that is gone is not an error.
        """
        ...

    async def close(self) -> None:
        """Lets go without stopping anything: attempts go on and can be found by the next."""
        ...

    @property
    def status_address(self) -> str | None:
        """The socket to which workers on this machine report that they wrote a status, if there is one."""
        return None

    def release(self, attempts: Sequence[Attempt]) -> None:  # noqa: ARG002 (a default that does nothing)
        """The ends of these attempts are committed: whatever was kept for another scheduler to find may be removed."""
        return

    def forget_run(self, run: RunId) -> None:  # noqa: ARG002
        """This scheduler no longer owns the run: what is held in memory for its attempts may be dropped."""
        return

"""The contract of executors. An executor starts, finds and stops attempts; it makes no decisions.

The attempt's documents are authoritative. When an executor notices something (a process that exits, for example) it
calls `on_status`, which makes the scheduler read the documents and is never a result by itself. A status that is passed
to the callback is checked like one that was read.
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

# The attempt's signed status document, which is already in the object store; or, from an executor without workers, the
# status itself.
ReportedStatus: TypeAlias = bytes | Status


class StatusCallback(Protocol):
    """Something may have happened to the attempt. With a status, neither its documents need to be read nor its executor to
    be asked. The end of a process is reported without a status; such a call is always correct, and replaces a status that
    was reported before but not processed yet."""

    def __call__(self, key: AttemptKey, status: ReportedStatus | None = None, /) -> None: ...


# The executor of attempts that wait for external jobs without a worker, whichever executor started them.
DEFERRED = "deferred"


class LaunchOrder(Record):
    """An attempt to start. Its signed spec is already in the object store; `spec` has the same bytes (empty if the executor
    needs no specs, or if the attempt was started before).

    `token` is passed to the worker in its environment, never in argv. `secrets` are environment variables whose values
    appear in no document. `interpreter` is the user's Python for Python tasks. `isolation` selects how the worker's
    process is created, if the executor has a choice. `position`: if it is not 0, the gate did not exist when the spec was
    written, and a worker need not search for it before this position (see `put_specs`).
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
    is_new: bool = False  # no executor was asked to start it before, so its gate cannot exist


class NotStarted(Record):
    """The attempt could not be started. `final`: a retry cannot help."""

    attempt: AttemptKey
    why: str
    final: bool


class Presence(StrEnum):
    RUNNING = "running"  # something of it is alive
    ORPHANED = "orphaned"  # something of it is alive, but not the worker that would report its end
    GONE = "gone"  # nothing of it is alive or can be started under this name
    LOST = "lost"  # its machine was rebooted: files may be outdated
    UNKNOWN = "unknown"  # unknown: on another machine, or unreachable


class ExecutorTraits(Record):
    """Properties of an executor's attempts that the scheduler needs."""

    fences_itself: bool = False  # a worker ends its task when it cannot write a heartbeat for the fence time
    presence_is_heartbeat: bool = False  # RUNNING counts as a heartbeat: nothing else writes one
    needs_specs: bool = True  # the specs of its attempts are read


CONTAINER_TRAITS = ExecutorTraits(presence_is_heartbeat=True)


class Executor(Protocol):
    """Executors inherit from this class: traits, `status_address`, `release` and `forget_run` have defaults."""

    traits: ExecutorTraits = ExecutorTraits()
    name: str

    def name_for(self, attempt: AttemptKey) -> str:
        """The external name: the same for the same attempt on the same machine and boot, different for any other."""
        ...

    async def start(self, orders: Sequence[LaunchOrder], on_status: StatusCallback) -> Sequence[NotStarted]:
        """Start the attempts. Returns those that could not be started.

        Can be repeated: an attempt that exists already is not started again. `on_status` is called in the event loop
        whenever something may have happened to the attempt, at the latest when its process is gone.
        """
        ...

    async def find(self, attempts: Sequence[Attempt]) -> Sequence[Presence]:
        """For each attempt, in order, whether something of it is alive, as far as this executor can see."""
        ...

    async def watch(self, attempts: Sequence[Attempt], on_status: StatusCallback) -> None:
        """Call `on_status` for adopted attempts as if this process had started them."""
        ...

    async def stop(self, attempts: Sequence[Attempt], *, at_once: bool) -> None:
        """Ask each attempt's worker to end its process tree gracefully; with `at_once`, kill the tree.

        Returns without waiting for the end; use `find`. An attempt that is gone is not an error.
        """
        ...

    async def close(self) -> None:
        """Free the executor's resources without stopping attempts. The next scheduler can find them."""
        ...

    @property
    def status_address(self) -> str | None:
        """The socket to which workers on this machine report that they wrote a status, if there is one."""
        return None

    def release(self, attempts: Sequence[Attempt]) -> None:  # noqa: ARG002 (a default that does nothing)
        """The ends of these attempts are committed: what was kept for other schedulers may be removed."""
        return

    def forget_run(self, run: RunId) -> None:  # noqa: ARG002
        """This scheduler no longer owns the run: what is held in memory for its attempts may be dropped."""
        return

"""The contract of an executor: it starts, finds and stops attempts. It decides nothing.

The result of an attempt is what its documents say (`ork.objects.attempt_documents`). To start an attempt is to get a worker
for it, which claims the attempt's gate, runs user code only if it won, and writes heartbeats, the log and the last status.
There are two ways:

- Start Ork's own worker program where the attempt is to run, with the URL of the object store, the attempt's name and, in its
  environment, the token: `local_spawn.py`. The worker does all of the above.
- For a program that knows nothing of Ork, act in its place from the scheduler's process: `docker/`. The documents come from
  `ork.app.executors`, which passes in a `StandIn` (`ork.worker.supervise.stand_in`) for each attempt.

What an executor notices by itself (a process that exits) it reports through a `StatusCallback`. A report is a reason to
read the documents, never a result. A status may come along with the report; it is checked as if it had been read.

Every promise is a test in tests/conformance/test_executors.py. docs/contributing.md lists the steps for a new executor.
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

# The attempt's signed status document, which is already in the object store; or, from an executor whose attempts have no
# worker of their own, the content of such a document.
ReportedStatus: TypeAlias = bytes | Status


class StatusCallback(Protocol):
    """Reports that something may have happened to the attempt. Called in the event loop.

    With `status`, the status document that the attempt wrote, the scheduler neither reads it from the store nor calls `find`: the death
    of the attempt will be reported separately, without `status`. Such a report must be right. It replaces an earlier one that
    the scheduler has not handled yet."""

    def __call__(self, key: AttemptKey, status: ReportedStatus | None = None, /) -> None: ...


# The executor of attempts that wait for external jobs without a worker, whichever began them.
DEFERRED = "deferred"


class LaunchOrder(Record):
    """An attempt to start. Its signed spec is already in the object store; `spec` has the same bytes (empty if the executor's
    traits say that specs are not needed, or if the attempt was started before).

    `token` is passed to the worker in its environment, never in argv. `secrets` are environment variables with their values,
    which appear in no document. `root` is the project's folder. `interpreter` is the user's Python, for Python tasks.
    `isolation` says how the worker's process is created, where the executor has a choice. `position` is what `put_specs`
    returned for the attempt; the worker passes it to `skip_to`.
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
    ORPHANED = "orphaned"  # something of it is alive, but not the worker that would report its end
    GONE = "gone"  # nothing of it is alive, nor can come alive under this name
    LOST = "lost"  # its machine was rebooted since; its documents may be incomplete
    UNKNOWN = "unknown"  # not known: it is on another machine, or nothing answers


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
        """The external name of an attempt that this executor would start: the same for the same attempt on the same machine
        and boot, also from another scheduler process; different for any other attempt. It is stored with the attempt,
        and all that a later scheduler has to find it by, so it must tell this executor's own machine from others."""
        ...

    async def start(self, orders: Sequence[LaunchOrder], on_status: StatusCallback) -> Sequence[NotStarted]:
        """Starts each attempt, without waiting until it runs. Returns those that could not be started.

        Can be repeated, also by another scheduler: user code of an attempt starts once. `on_status` is called in the event
        loop whenever something may have happened to the attempt, at the latest when its process is gone.
        """
        ...

    async def find(self, attempts: Sequence[Attempt]) -> Sequence[Presence]:
        """For each attempt, in order, whether something of it is alive. UNKNOWN, never GONE, for one of another machine."""
        ...

    async def watch(self, attempts: Sequence[Attempt], on_status: StatusCallback) -> None:
        """For attempts that another scheduler started: `on_status` is called as if `start` had been called here."""
        ...

    async def stop(self, attempts: Sequence[Attempt], *, at_once: bool) -> None:
        """Asks each attempt's worker to end its whole process tree, with time to clean up; with `at_once`, kills it now.

        Returns without waiting for the end, which `find` shows. An attempt that is gone is not an error.
        """
        ...

    async def close(self) -> None:
        """Releases what this process holds and stops no attempt: they go on, and the next scheduler finds them."""
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

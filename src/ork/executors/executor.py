"""The contract of an executor: it starts, finds and stops attempts. It decides nothing.

The result of an attempt is what its documents say (`ork.objects.attempt_documents`). To start an attempt is to get a worker
for it, which claims the attempt's gate, runs user code only if it won, and writes heartbeats, the log and the last status.
There are two ways:

- Start Ork's own worker program where the attempt is to run, with the URL of the object store, the attempt's name and, in its
  environment, the token: `local_worker.py`. The worker does all of the above.
- For a program that knows nothing of Ork, act in its place from the scheduler's process: `docker/`. The documents come from
  `ork.app.executors`, which passes in a `StandIn` (`ork.worker.supervise.stand_in`) for each attempt.

An executor whose platform can start many attempts as one unit (a Cloud Run execution with a task count, an indexed Job of
Kubernetes) says so in its traits, `starts_groups`, and gets the instances of a fanned-out task as groups (`start_groups`).
Everything after the start is per attempt, as ever: each has its own gate, documents and end, and `find`, `watch` and `stop`
name attempts. docs/adr/0016-launch-groups.md says why.

What an executor notices by itself (a process that exits) it reports through a `StatusCallback`. A report is a reason to
read the documents, never a result. A status may come along with the report; it is checked as if it had been read.

Every promise is a test in tests/conformance/test_executors.py. docs/contributing.md lists the steps for a new executor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Protocol, TypeAlias

from ork.model.ids import AttemptKey, RunId
from ork.model.platforms import FENCE_SECONDS
from ork.model.record import Record
from ork.model.task import Attempt, Status
from ork.model.workflow import Isolation, TaskSpec

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
    # The task's own variables, sorted. None if its modules must not be preloaded: it has variables that are no constants, limits,
    # an environment or a user of its own.
    env: tuple[tuple[str, str], ...] | None = ()
    keeps: str = ""  # names what its worker keeps for the next attempt: the dbt of a project, see `worker/supervise/dbt_server.py`


class GroupOrder(Record):
    """Attempts to start as one unit. Their signed specs are already in the object store.

    `id` names the group: the same for every call about it, different for any other group. At most `parallelism` of its
    attempts may run at the same time. `key` is what the tokens of its attempts are derived from, so that one environment
    variable of the unit is enough: `token_maker(bytes.fromhex(key))` of `ork.objects.documents` makes the token of an
    attempt from its name. `orders` are the attempts in the order of their index in the group. When a group is started again
    some may be missing: those that have ended, and those that are alive.
    """

    id: str
    parallelism: int
    key: str
    orders: tuple[LaunchOrder, ...]


class NotStarted(Record):
    """The attempt could not be started. `final` when trying again cannot help."""

    attempt: AttemptKey
    why: str
    final: bool


class Presence(StrEnum):
    RUNNING = "running"  # something of it is alive
    # Nothing of it is alive, and a unit of its group is: that has not started it, or did and it ended before it won its gate.
    # Only for an attempt that is neither running by its row nor being ended: those are RUNNING or GONE.
    QUEUED = "queued"
    ORPHANED = "orphaned"  # something of it is alive, but not the worker that would report its end
    GONE = "gone"  # nothing of it that won its gate is alive; what comes alive later loses the gate, or wins it and is found
    LOST = "lost"  # its machine was rebooted since; its documents may be incomplete
    UNKNOWN = "unknown"  # not known: it is on another machine, or nothing answers


class ExecutorTraits(Record):
    """What a scheduler has to know about the attempts of an executor."""

    fences_itself: bool = False  # a worker ends its task when it cannot write a heartbeat for the fence time
    presence_is_heartbeat: bool = False  # RUNNING counts as a heartbeat: nothing else writes one
    needs_specs: bool = True  # somebody reads the specs of its attempts
    starts_groups: int = 0  # the most attempts that it starts as one unit; 0: it starts every attempt alone
    fence_seconds: float | None = None  # the fence time of its workers; None: the installation's
    refers_to_secrets: bool = False  # it is given references to secrets, never values


CONTAINER_TRAITS = ExecutorTraits(presence_is_heartbeat=True)
# Of platforms with machines of their own, which confirm ends by themselves (`ork.model.platforms`).
PLATFORM_TRAITS = ExecutorTraits(
    fences_itself=True,
    presence_is_heartbeat=True,
    starts_groups=1000,
    fence_seconds=FENCE_SECONDS,
    refers_to_secrets=True,
)


class Executor(Protocol):
    """Executors inherit from this class: traits, `group_size`, `start_groups`, `why_waiting`, `status_address`, `release` and
    `forget_run` have defaults."""

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

    def group_size(self, task: TaskSpec) -> int:  # noqa: ARG002 (a default for all tasks)
        """The most instances of this task that it starts as one unit; 0: each is started alone."""
        return self.traits.starts_groups

    async def start_groups(self, groups: Sequence[GroupOrder], on_status: StatusCallback) -> Sequence[NotStarted]:  # noqa: ARG002
        """Starts each group as one unit, as `start` starts attempts: without waiting, and returns the attempts that could not
        be started. Called only where `group_size` is not 0.

        Can be repeated, also by another scheduler and with some of the group's attempts only: as long as a unit of the
        group can still start an attempt, no further unit is started for it.
        """
        return [
            NotStarted(order.attempt.key, f"executor `{self.name}` starts no groups", final=True)
            for group in groups
            for order in group.orders
        ]

    async def find(self, attempts: Sequence[Attempt]) -> Sequence[Presence]:
        """For each attempt, in order, whether something of it is alive. UNKNOWN, never GONE, for one of another machine;
        QUEUED, never GONE, for one that its group may yet start."""
        ...

    async def watch(self, attempts: Sequence[Attempt], on_status: StatusCallback) -> None:
        """For attempts that another scheduler started: `on_status` is called as if `start` had been called here."""
        ...

    async def stop(self, attempts: Sequence[Attempt], *, at_once: bool) -> None:
        """Asks each attempt's worker to end its whole process tree, with time to clean up; with `at_once`, kills it now.

        Returns without waiting for the end, which `find` shows. An attempt that is gone is not an error. The other attempts
        of its group go on. One that is QUEUED may stay so: its gate is closed, so it leaves without running.
        """
        ...

    async def close(self) -> None:
        """Releases what this process holds and stops no attempt: they go on, and the next scheduler finds them."""
        ...

    def why_waiting(self, attempt: AttemptKey) -> str | None:  # noqa: ARG002 (a default that knows nothing)
        """Why the attempt has not begun, or why the platform stopped it, in the platform's words; None if nothing is known. Part of
        the failure of an attempt that does not start in time, or whose worker was told to stop by nobody else."""
        return None

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


class OnDemand(Executor):
    """An executor that is created on first use: most installations never need all of them."""

    def __init__(self, name: str, make: Callable[[], Executor], traits: ExecutorTraits) -> None:
        self.name = name
        self.traits = traits
        self._make = make
        self._made: Executor | None = None

    def make(self) -> None:
        """Create the executor now."""
        _ = self._executor

    def name_for(self, attempt: AttemptKey) -> str:
        return self._executor.name_for(attempt)

    async def start(self, orders: Sequence[LaunchOrder], on_status: StatusCallback) -> Sequence[NotStarted]:
        return await self._executor.start(orders, on_status)

    def group_size(self, task: TaskSpec) -> int:
        return self._executor.group_size(task)

    async def start_groups(self, groups: Sequence[GroupOrder], on_status: StatusCallback) -> Sequence[NotStarted]:
        return await self._executor.start_groups(groups, on_status)

    async def find(self, attempts: Sequence[Attempt]) -> Sequence[Presence]:
        return await self._executor.find(attempts)

    async def watch(self, attempts: Sequence[Attempt], on_status: StatusCallback) -> None:
        await self._executor.watch(attempts, on_status)

    async def stop(self, attempts: Sequence[Attempt], *, at_once: bool) -> None:
        await self._executor.stop(attempts, at_once=at_once)

    def why_waiting(self, attempt: AttemptKey) -> str | None:
        return None if self._made is None else self._made.why_waiting(attempt)

    def release(self, attempts: Sequence[Attempt]) -> None:
        self._executor.release(attempts)

    def forget_run(self, run: RunId) -> None:
        if self._made is not None:
            self._made.forget_run(run)

    async def close(self) -> None:
        if self._made is not None:
            await self._made.close()

    @property
    def _executor(self) -> Executor:
        if self._made is None:
            self._made = self._make()
        return self._made

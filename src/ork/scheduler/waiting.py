"""The poller as an executor, created on first use: most runs never need it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ork.errors import ExecutorError, StoreError
from ork.executors.executor import DEFERRED, Executor, LaunchOrder, NotStarted, Presence, StatusCallback
from ork.model.ids import AttemptKey, RunId
from ork.model.task import Attempt

if TYPE_CHECKING:
    from ork.scheduler.poll import Poller


class DeferredExecutor(Executor):
    """Creates the poller for the first attempt that waits for a job. Until then there is nothing to do."""

    name = DEFERRED

    def __init__(self, make: Callable[[], Poller]) -> None:
        self._make = make
        self._poller: Poller | None = None

    def name_for(self, attempt: AttemptKey) -> str:
        return f"{DEFERRED}:{attempt}"

    async def start(self, orders: Sequence[LaunchOrder], on_status: StatusCallback) -> Sequence[NotStarted]:  # noqa: ARG002
        return [NotStarted(order.attempt.key, "a waiting attempt cannot be started", final=True) for order in orders]

    async def find(self, attempts: Sequence[Attempt]) -> Sequence[Presence]:
        return [Presence.RUNNING if await self._goes_on(attempt) else Presence.GONE for attempt in attempts]

    async def watch(self, attempts: Sequence[Attempt], on_status: StatusCallback) -> None:
        await self._get_poller().watch(attempts, on_status)

    async def stop(self, attempts: Sequence[Attempt], *, at_once: bool) -> None:
        await self._get_poller().stop(attempts, at_once=at_once)

    async def close(self) -> None:
        if self._poller is not None:
            self._poller.close()

    async def _goes_on(self, attempt: Attempt) -> bool:
        """True if the attempt is polled, or is given up while a run that it waits for has not ended."""
        if self._poller is not None and self._poller.is_waiting(attempt.key):
            return True
        if attempt.closing is None:
            return False
        try:
            return await self._get_poller().has_active_runs(attempt)
        except StoreError as problem:
            raise ExecutorError(problem.message) from None

    def _get_poller(self) -> Poller:
        if self._poller is None:
            self._poller = self._make()
        return self._poller

    # ── beyond the executor protocol ──────────────────────────────────────────────────────────────

    def forget_run(self, run: RunId) -> None:
        """Drop the run's waits: another scheduler may own it now and poll its jobs."""
        if self._poller is not None:
            self._poller.forget_run(run)

    def runs_changed(self, runs: Sequence[RunId] | None = None) -> None:
        """These runs, or with None any run, may have changed: attempts that wait for one check it again."""
        if self._poller is not None:
            self._poller.runs_changed(runs)

    async def settle(self) -> bool:
        """Wait until every job has been polled. True if an attempt has ended."""
        return await self._poller.settle() if self._poller is not None else False

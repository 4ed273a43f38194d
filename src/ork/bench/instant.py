"""An executor whose attempts end as soon as they are started, so that only the engine is measured."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from ork.executors.executor import Executor, ExecutorTraits, LaunchOrder, NotStarted, Presence, StatusCallback
from ork.model.ids import AttemptKey, RunId
from ork.model.task import Attempt, InlineOutput, Status

MOMENT = datetime(2026, 1, 1, tzinfo=UTC)
RUNNING = Status(1, "running", MOMENT, MOMENT, None, None, None, None)
SUCCESS = Status(2, "success", MOMENT, MOMENT, MOMENT, 0, None, InlineOutput("1"))


class InstantExecutor(Executor):
    """Has no workers, and reports what a fast, successful worker would."""

    name = "process"
    traits = ExecutorTraits(needs_specs=False)

    def __init__(self) -> None:
        self._running: dict[AttemptKey, StatusCallback] = {}

    def name_for(self, attempt: AttemptKey) -> str:
        return f"instant:{attempt}"

    async def start(self, orders: Sequence[LaunchOrder], on_status: StatusCallback) -> Sequence[NotStarted]:
        for order in orders:
            self._running[order.attempt.key] = on_status
            on_status(order.attempt.key, RUNNING)
        return ()

    def committed(self, _runs: Sequence[RunId]) -> None:
        """End all running attempts, so that every task passes through each state."""
        running, self._running = self._running, {}
        for key, on_status in running.items():
            on_status(key, SUCCESS)

    async def find(self, attempts: Sequence[Attempt]) -> Sequence[Presence]:
        return [Presence.RUNNING if attempt.key in self._running else Presence.GONE for attempt in attempts]

    async def watch(self, attempts: Sequence[Attempt], on_status: StatusCallback) -> None:
        for attempt in attempts:
            on_status(attempt.key, SUCCESS)

    async def stop(self, attempts: Sequence[Attempt], *, at_once: bool) -> None:
        """Do nothing: all attempts have ended already."""

    async def close(self) -> None:
        """Do nothing: there is nothing to free."""

"""An executor that is created on first use: most installations never need all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ork.executors.executor import Executor, ExecutorTraits, LaunchOrder, NotStarted, Presence, StatusCallback
from ork.model.ids import AttemptKey
from ork.model.task import Attempt


class OnDemand(Executor):
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

    async def find(self, attempts: Sequence[Attempt]) -> Sequence[Presence]:
        return await self._executor.find(attempts)

    async def watch(self, attempts: Sequence[Attempt], on_status: StatusCallback) -> None:
        await self._executor.watch(attempts, on_status)

    async def stop(self, attempts: Sequence[Attempt], *, at_once: bool) -> None:
        await self._executor.stop(attempts, at_once=at_once)

    def release(self, attempts: Sequence[Attempt]) -> None:
        self._executor.release(attempts)

    async def close(self) -> None:
        if self._made is not None:
            await self._made.close()

    @property
    def _executor(self) -> Executor:
        if self._made is None:
            self._made = self._make()
        return self._made

"""Stands for an executor that cannot be created, because a package or its configuration is missing."""

from __future__ import annotations

from collections.abc import Sequence

from ork.errors import UsageError
from ork.executors.executor import (
    PLATFORM_TRAITS,
    Executor,
    GroupOrder,
    LaunchOrder,
    NotStarted,
    Presence,
    StatusCallback,
)
from ork.model.ids import AttemptKey
from ork.model.task import Attempt


class UnusableExecutor(Executor):
    """Starts nothing, and says why. It knows nothing of attempts that others started."""

    traits = PLATFORM_TRAITS

    def __init__(self, name: str, problem: UsageError) -> None:
        self.name = name
        advice = f" ({problem.hint})" if problem.hint else ""
        self._why = problem.message + advice

    def name_for(self, attempt: AttemptKey) -> str:
        return f"{self.name.partition(':')[0]}:unusable:{attempt}"

    async def start(self, orders: Sequence[LaunchOrder], on_status: StatusCallback) -> Sequence[NotStarted]:  # noqa: ARG002
        return [NotStarted(order.attempt.key, self._why, final=True) for order in orders]

    async def start_groups(self, groups: Sequence[GroupOrder], on_status: StatusCallback) -> Sequence[NotStarted]:
        return [refused for group in groups for refused in await self.start(group.orders, on_status)]

    async def find(self, attempts: Sequence[Attempt]) -> Sequence[Presence]:
        return [
            Presence.GONE if each.external_name == self.name_for(each.key) else Presence.UNKNOWN for each in attempts
        ]

    async def watch(self, attempts: Sequence[Attempt], on_status: StatusCallback) -> None:  # noqa: ARG002
        return

    async def stop(self, attempts: Sequence[Attempt], *, at_once: bool) -> None:  # noqa: ARG002
        return

    async def close(self) -> None:
        return

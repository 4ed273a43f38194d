"""Leases, broken on purpose (see `tests.simulation.mutants.mutations`)."""

from __future__ import annotations

from typing import Any


def trust_for_ever(_original: Any) -> Any:
    return property(lambda self: self._renewed_at is not None)


def count_from_the_answer(_original: Any) -> Any:
    async def renew(self: Any, now: Any) -> bool:
        if await self._store.renew(self.id):
            self._renewed_at = self._monotonic()
            return True
        await self.register(now)
        return False

    return renew


def take_any_answer(_original: Any) -> Any:
    async def renew(self: Any, _now: Any) -> bool:
        sent = self._monotonic()
        await self._store.renew(self.id)
        self._renewed_at = sent
        return True

    return renew


def renew_what_is_gone(original: Any) -> Any:
    async def renew(self: Any, scheduler: Any) -> bool:
        await original(self, scheduler)
        return True

    return renew


def wake_and_go_on(_original: Any) -> Any:
    async def keep_lease(self: Any, now: Any) -> None:
        await self.lease.renew(now)

    return keep_lease

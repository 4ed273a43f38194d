"""Invariants of leases: compares what a scheduler assumes about its lease with the store."""

from __future__ import annotations

from collections.abc import Callable

from ork.model.ids import SchedulerId
from ork.testing.ledger import Ledger


class LeaseChecks:
    """`is_trusted` returns whether a living scheduler considers its lease valid."""

    def __init__(self, ledger: Ledger, violate: Callable[[str, str], None], clock: Callable[[], float]) -> None:
        self.is_trusted: Callable[[SchedulerId], bool] = lambda _scheduler: False
        self._ledger = ledger
        self._violate = violate
        self._clock = clock
        self._expired: set[SchedulerId] = set()  # schedulers whose runs others have claimed since

    def registered(self, scheduler: SchedulerId) -> None:
        self._expired.discard(scheduler)

    def renewed(self, scheduler: SchedulerId) -> None:
        if scheduler in self._expired:
            self._violate("lease-trusted", f"{scheduler} renewed its lease after another had taken over its runs")

    def taken_over(self, owner: SchedulerId | None, by: SchedulerId) -> None:
        if owner is not None and owner != by:
            self._expired.add(owner)

    def check(self, scheduler: SchedulerId) -> None:
        until = self._ledger.leases.get(scheduler, float("-inf"))
        if until <= self._clock() and self.is_trusted(scheduler):
            self._violate("lease-trusted", f"{scheduler} trusts its lease, which expired at {until:.1f} s")

"""Invariants of rates: an independent record of all admitted starts by the store's clock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from ork.core.effects import LaunchRequest
from ork.model.workflow import Rate
from ork.testing.ledger import RunRecord

ROUNDING = 1e-6


class RateChecks:
    """`asked_at` returns when the call began that takes effect now."""

    def __init__(
        self, clock: Callable[[], float], violate: Callable[[str, str], None], asked_at: Callable[[], float]
    ) -> None:
        self.pools: Mapping[str, Rate] = {}
        self._clock = clock
        self._violate = violate
        self._asked_at = asked_at
        self._starts: dict[str, list[float]] = {}
        self._asked: dict[str, list[float]] = {}  # when each of them was asked for
        self._rates: dict[str, Rate] = {}

    def check_start(self, record: RunRecord, request: LaunchRequest) -> None:
        """Check that no period has more starts than one burst plus the refill of that period."""
        for name, rate in self._rates_of(record, request):
            self._rates[name] = rate
            starts = self._starts.setdefault(name, [])
            starts.append(self._clock())
            self._asked.setdefault(name, []).append(self._asked_at())
            for place, first in enumerate(starts):
                most = rate.count + (starts[-1] - first) * rate.count / rate.seconds
                if len(starts) - place > most + ROUNDING:
                    self._violate("rates", f"{name} allows {rate}; {len(starts) - place} started since {first:.3f}")
                    break

    def check_refusals(self, full: Iterable[str]) -> None:
        """Check that a rate with capacity rejects no start."""
        for name in sorted(full):
            rate = self._rates.get(name)
            if rate is not None and self._left(name, rate) >= 1 + ROUNDING:
                self._violate(
                    "rates", f"{name} allows {rate}, has {self._left(name, rate):.3f} left and admitted no launch"
                )
            elif name.startswith("rate:") and rate is None:
                self._violate("rates", f"{name} has never been used and admitted no launch")

    def _left(self, name: str, rate: Rate) -> float:
        """At the least: what comes in between a request for a start and the start may not count."""
        left, at = float(rate.count), 0.0
        for start, asked in zip(self._starts[name], self._asked[name], strict=True):
            left = min(float(rate.count), left + max(0.0, asked - at) * rate.count / rate.seconds) - 1
            at = start
        return min(float(rate.count), left + max(0.0, self._asked_at() - at) * rate.count / rate.seconds)

    def _rates_of(self, record: RunRecord, request: LaunchRequest) -> list[tuple[str, Rate]]:
        spec, found = record.spec(request.task.key), []
        if spec.rate is not None:
            found.append((f"rate:task:{record.run.workflow}.{spec.name}", spec.rate))
        if spec.pool is not None and (rate := self.pools.get(f"pool:{spec.pool}")) is not None:
            found.append((f"rate:pool:{spec.pool}", rate))
        return found

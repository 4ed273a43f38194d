"""Limits on concurrent use, in total and per client, and on the rate of requests."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

NAMES_KEPT = 4096


class Quota:
    """At most `total` concurrent holders, and at most `each` with the same name."""

    def __init__(self, total: int, each: int) -> None:
        self._total = total
        self._each = each
        self._held: Counter[str] = Counter()

    @contextmanager
    def held(self, name: str) -> Iterator[bool]:
        """Holds a slot for the duration of the block; yields False if there is none."""
        if self._held[name] >= self._each or self._held.total() >= self._total:
            yield False
            return
        self._held[name] += 1
        try:
            yield True
        finally:
            self._held[name] -= 1
            if not self._held[name]:
                del self._held[name]


class RequestRates:
    """At most `per_second` requests with the same name in the long run, and `burst` at once."""

    def __init__(self, per_second: float, burst: int) -> None:
        self._per_second = per_second
        self._burst = burst
        self._used: OrderedDict[str, tuple[float, float]] = OrderedDict()  # how much of the burst was used up, and when

    def seconds_to_wait(self, name: str, now: float) -> float | None:
        """Count a request. Returns None if it may proceed, else the seconds to wait."""
        used, at = self._used.pop(name, (0.0, now))
        used = max(0.0, used - (now - at) * self._per_second)
        wait = None if used + 1 <= self._burst else (used + 1 - self._burst) / self._per_second
        self._used[name] = (used + 1 if wait is None else used, now)
        while len(self._used) > NAMES_KEPT:
            self._used.popitem(last=False)
        return wait

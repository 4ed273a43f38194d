"""Which launches fit: decided inside the commit, from what is active, never from counters that could leak."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from ork.core.effects import LaunchRequest
from ork.core.limits import limit_names, pool_rate
from ork.model.workflow import Rate


class ActiveAttempts(NamedTuple):
    """So many attempts are active on this executor, in this pool."""

    executor: str
    pool: str | None
    number: int


class Bucket:
    """Starts that a rate has left. It fills evenly, up to one burst of `rate.count`."""

    def __init__(self, rate: Rate, tokens: float, elapsed: float) -> None:
        self.rate = rate
        self.tokens = min(float(rate.count), tokens + max(0.0, elapsed) * rate.count / rate.seconds)
        self.is_used = False

    @property
    def seconds_to_next(self) -> float:
        return max(0.0, 1.0 - self.tokens) * self.rate.seconds / self.rate.count

    def take(self) -> None:
        self.tokens -= 1.0
        self.is_used = True


class Admission(NamedTuple):
    """`admitted` are places in the given list of launches; `full` are limits that would turn away another like those, and
    rates that turned one away; `buckets` are those that were drawn from."""

    admitted: frozenset[int]
    full: frozenset[str]
    again_in: float | None
    buckets: dict[str, Bucket]


_NONE: dict[str, Bucket] = {}


class Rates:
    """The rates launches count against, their buckets opened as they are needed."""

    def __init__(self, pools: Mapping[str, Rate], open_bucket: Callable[[str, Rate], Bucket]) -> None:
        self._pools = pools
        self._open = open_bucket
        self.buckets: dict[str, Bucket] = {}

    def of(self, request: LaunchRequest) -> dict[str, Bucket]:
        pool = request.attempt.pool
        if request.rate is None and pool is None:
            return _NONE
        wanted = [] if request.rate is None else [request.rate]
        if pool is not None and (rate := self._pools.get(f"pool:{pool}")) is not None:
            wanted.append((pool_rate(pool), rate))
        for name, rate in wanted:
            if name not in self.buckets:
                self.buckets[name] = self._open(name, rate)
        return {name: self.buckets[name] for name, _ in wanted}


def room_left(limits: Mapping[str, int], active: Iterable[ActiveAttempts]) -> dict[str, int]:
    room = dict(limits)
    for executor, pool, number in active:
        for name in limit_names(executor, pool):
            if name in room:
                room[name] -= number
    return room


def admit(launches: Sequence[LaunchRequest], room: Mapping[str, int], rates: Rates) -> Admission:
    """By priority, then in the order given. A request that is turned away takes nothing from the others."""
    left = dict(room)
    admitted: set[int] = set()
    full: set[str] = set()
    waits: list[float] = []
    counts_against: dict[tuple[str, str | None], list[str]] = {}  # of those that are limited
    for place in sorted(range(len(launches)), key=[-request.priority for request in launches].__getitem__):
        request = launches[place]
        attempt, buckets = request.attempt, rates.of(request)
        kind = attempt.executor, attempt.pool
        names = counts_against.get(kind)
        if names is None:
            names = counts_against[kind] = [name for name in limit_names(*kind) if name in left]
        exhausted = [name for name in names if left[name] <= 0]
        empty = [name for name, bucket in buckets.items() if bucket.tokens < 1.0] if buckets else []
        if exhausted or empty:
            full.update(empty)
            waits += [buckets[name].seconds_to_next for name in empty]
            continue
        admitted.add(place)
        for name in names:
            left[name] -= 1
        for bucket in buckets.values():
            bucket.take()
    full.update(name for names in counts_against.values() for name in names if left[name] <= 0)
    used = {name: bucket for name, bucket in rates.buckets.items() if bucket.is_used}
    return Admission(frozenset(admitted), frozenset(full), min(waits, default=None), used)

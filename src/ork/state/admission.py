"""Which launches and which runs fit below their limits. Decided inside the commit or claim from the active attempts and runs,
never from counters that could drift."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from ork.core.effects import LaunchRequest
from ork.core.limits import limit_names, pool_rate
from ork.model.task import Attempt
from ork.model.workflow import Rate


class ActiveAttempts(NamedTuple):
    """The number of slots that the active attempts of an executor and pool hold."""

    executor: str
    pool: str | None
    number: int


class TokenBucket:
    """The remaining starts of a rate. Refills evenly, up to one burst of `rate.count`."""

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
    """The result. `admitted` are indexes of the given launches; `full` are the limits with no capacity left and the
    rates that rejected a launch; `buckets` are those that starts were taken from; `parallelism` is what each admitted
    group got."""

    admitted: frozenset[int]
    full: frozenset[str]
    again_in: float | None
    buckets: dict[str, TokenBucket]
    parallelism: dict[str, int]


class _GroupSlots:
    """The slots of one group: as many as were free at its first attempt, at most as many as it wants."""

    def __init__(self, wanted: int, free: int) -> None:
        self.granted = min(wanted, free)
        self.taken = 0


_NONE: dict[str, TokenBucket] = {}


class LaunchRates:
    """The rates that launches count against. Buckets are opened when they are needed."""

    def __init__(self, pools: Mapping[str, Rate], open_bucket: Callable[[str, Rate], TokenBucket]) -> None:
        self._pools = pools
        self._open = open_bucket
        self.buckets: dict[str, TokenBucket] = {}

    def of(self, request: LaunchRequest) -> dict[str, TokenBucket]:
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


def admit(launches: Sequence[LaunchRequest], room: Mapping[str, int], rates: LaunchRates) -> Admission:
    """Admit launches by priority, then in the given order. A rejected launch takes no capacity from others. A group
    takes the free slots, up to its parallelism; its further attempts wait inside the group and need no slot."""
    left = dict(room)
    groups: dict[str, _GroupSlots] = {}
    admitted: set[int] = set()
    full: set[str] = set()
    waits: list[float] = []
    counts_against: dict[tuple[str, str | None], list[str]] = {}  # the names that have a limit
    for place in sorted(range(len(launches)), key=[-request.priority for request in launches].__getitem__):
        request = launches[place]
        attempt, buckets = request.attempt, rates.of(request)
        kind = attempt.executor, attempt.pool
        names = counts_against.get(kind)
        if names is None:
            names = counts_against[kind] = [name for name in limit_names(*kind) if name in left]
        group = None
        if attempt.group is not None:
            group = groups.get(attempt.group.id)
            if group is None:
                free = min([left[name] for name in names], default=attempt.group.parallelism)
                group = groups[attempt.group.id] = _GroupSlots(attempt.group.parallelism, free)
        has_slot = group.granted > 0 if group else all(left[name] > 0 for name in names)
        empty = [name for name, bucket in buckets.items() if bucket.tokens < 1.0] if buckets else []
        if not has_slot or empty:
            full.update(empty)
            waits += [buckets[name].seconds_to_next for name in empty]
            continue
        admitted.add(place)
        if group is None or group.taken < group.granted:
            for name in names:
                left[name] -= 1
        if group is not None:
            group.taken += 1
        for bucket in buckets.values():
            bucket.take()
    full.update(name for names in counts_against.values() for name in names if left[name] <= 0)
    used = {name: bucket for name, bucket in rates.buckets.items() if bucket.is_used}
    parallelism = {id: group.granted for id, group in groups.items() if group.taken}
    return Admission(frozenset(admitted), frozenset(full), min(waits, default=None), used, parallelism)


def admit_all(launches: Sequence[LaunchRequest]) -> Admission:
    """The result of `admit` without limits and rates."""
    groups = {group.id: group.parallelism for request in launches if (group := request.attempt.group) is not None}
    return Admission(frozenset(range(len(launches))), frozenset(), None, {}, groups)


def slots_held(attempts: Iterable[Attempt]) -> list[ActiveAttempts]:
    """The slots that active attempts hold: one each, but a group at most its parallelism."""
    held: list[ActiveAttempts] = []
    groups: dict[str, list[Attempt]] = {}
    for attempt in attempts:
        if attempt.group is None:
            held.append(ActiveAttempts(attempt.executor, attempt.pool, 1))
        else:
            groups.setdefault(attempt.group.id, []).append(attempt)
    for members in groups.values():
        most = max(each.group.parallelism for each in members if each.group is not None)
        held.append(ActiveAttempts(members[0].executor, members[0].pool, min(most, len(members))))
    return held


Claimable: TypeAlias = "tuple[str, str, bool, bool]"
"""The run, its workflow, whether it is pending, and whether it is to be cancelled."""


def that_fit(found: Iterable[Claimable], free: dict[str, int]) -> list[str]:
    """The runs that `max_active_runs` of their workflow allows. Lowers `free`, the capacity of workflows with a limit, by the
    pending ones; all others are counted already. A run that is to be cancelled needs no capacity."""
    fitting = []
    for run, workflow, is_pending, is_to_be_cancelled in found:
        if is_pending and workflow in free:
            if free[workflow] <= 0 and not is_to_be_cancelled:
                continue
            free[workflow] -= 1
        fitting.append(run)
    return fitting

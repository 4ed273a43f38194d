"""Which launches fit: decided inside the commit, from what is active, never from counters that could leak."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ork.core.effects import Wish
from ork.model.task import Attempt
from ork.state.store import GLOBAL_LIMIT


class Admission(NamedTuple):
    """`admitted` are places in the given list of wishes."""

    admitted: frozenset[int]
    full: frozenset[str]


class ActiveAttempts(NamedTuple):
    """So many attempts are active on this executor, in this pool."""

    executor: str
    pool: str | None
    number: int


def limits_of(executor: str, pool: str | None) -> tuple[str, ...]:
    """The names of the limits an attempt counts against, set or not."""
    own = (GLOBAL_LIMIT, f"executor:{executor}")
    return own if pool is None else (*own, f"pool:{pool}")


def room_left(limits: Mapping[str, int], active: Iterable[ActiveAttempts]) -> dict[str, int]:
    room = dict(limits)
    for executor, pool, number in active:
        for name in limits_of(executor, pool):
            if name in room:
                room[name] -= number
    return room


def admit(wishes: Sequence[Wish], room: Mapping[str, int]) -> Admission:
    """By priority, then in the order given. A wish that is turned away takes nothing from the others."""
    left = dict(room)
    admitted, full = set(), set()
    for place in sorted(range(len(wishes)), key=lambda place: -wishes[place].priority):
        names = _counted(wishes[place].attempt, left)
        exhausted = [name for name in names if left[name] <= 0]
        full.update(exhausted)
        if not exhausted:
            admitted.add(place)
            for name in names:
                left[name] -= 1
    return Admission(frozenset(admitted), frozenset(full))


def _counted(attempt: Attempt, room: Mapping[str, int]) -> list[str]:
    return [name for name in limits_of(attempt.executor, attempt.pool) if name in room]

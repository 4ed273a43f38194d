"""The limits a launch counts against. The commit enforces them by counting rows."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import TypeAlias

from ork.model.workflow import TaskSpec

EVERYTHING = "*"  # every active attempt of the installation
RATE = "rate:"  # prefix of rate limits, which count starts and are not held while running

Lane: TypeAlias = frozenset[str]
"""Tasks that count against the same limits wait in the same lane."""


@lru_cache(maxsize=256)  # called for every launch and every end, mostly with the same arguments
def limit_names(executor: str, pool: str | None) -> tuple[str, ...]:
    """Names of the limits on concurrent attempts, whether configured or not."""
    names = (EVERYTHING, f"executor:{executor}")
    return names if pool is None else (*names, f"pool:{pool}")


def pool_rate(pool: str) -> str:
    return f"{RATE}pool:{pool}"


def task_rate(workflow: str, task: str) -> str:
    return f"{RATE}task:{workflow}.{task}"


def lane_of(workflow: str, spec: TaskSpec) -> Lane:
    """The limits of one task. Tasks without a rate of their own share lanes: a wide run has few lanes, not one per
    task."""
    names = {*limit_names(spec.executor, spec.pool)}
    if spec.rate is not None:
        names.add(task_rate(workflow, spec.name))
    if spec.pool is not None:
        names.add(pool_rate(spec.pool))
    return frozenset(names)


class Capacity:
    """Remaining launches below limits that are known to be nearly full. All other limits count as unlimited."""

    def __init__(self) -> None:
        self._remaining: dict[str, int] = {}

    def __bool__(self) -> bool:
        """True if any limit is known."""
        return bool(self._remaining)

    def allows(self, limits: Iterable[str]) -> bool:
        remaining = self._remaining
        if remaining:
            for name in limits:  # a plain loop: called for every ready task
                if remaining.get(name, 1) <= 0:
                    return False
        return True

    def reserve(self, limits: Iterable[str], slots: int = 1) -> None:
        """Count a launch, or a group that wants `slots` and takes those that are left."""
        remaining = self._remaining
        if remaining:
            for name in limits:
                if remaining.get(name):
                    remaining[name] -= min(slots, remaining[name])

    def release(self, limits: Iterable[str], ends: int = 1) -> None:
        """Count one or more ends."""
        for name in limits if self._remaining else ():
            if name in self._remaining:
                self._remaining[name] += ends

    def exhaust(self, limits: Iterable[str]) -> None:
        """Set the limits to zero after they rejected a launch."""
        self._remaining |= dict.fromkeys(limits, 0)

    def remaining(self, limit: str) -> int | None:
        """Remaining launches below this limit; None if unknown."""
        return self._remaining.get(limit)

    def copy(self) -> Capacity:
        copied = Capacity()
        copied._remaining = dict(self._remaining)
        return copied


UNLIMITED = Capacity()
"""No limit is known. Never changes, because only known limits are counted down."""

"""Which limits a launch counts against. They are enforced inside the commit, by counting rows."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import TypeAlias

from ork.model.workflow import TaskSpec

EVERYTHING = "*"  # every active attempt of the installation
RATE = "rate:"  # what limits on starts begin with; nobody holds those

Lane: TypeAlias = frozenset[str]
"""Tasks that count against the same limits wait in the same lane."""


@lru_cache(maxsize=256)  # asked for with every launch and every end, of which many count against the same
def limit_names(executor: str, pool: str | None) -> tuple[str, ...]:
    """The limits on how many may be active at once, set or not."""
    names = (EVERYTHING, f"executor:{executor}")
    return names if pool is None else (*names, f"pool:{pool}")


def pool_rate(pool: str) -> str:
    return f"{RATE}pool:{pool}"


def task_rate(workflow: str, task: str) -> str:
    return f"{RATE}task:{workflow}.{task}"


def lane_of(workflow: str, spec: TaskSpec) -> Lane:
    """A task without a rate of its own shares its lane: a wide run has a few lanes, not one for each task."""
    names = {*limit_names(spec.executor, spec.pool)}
    if spec.rate is not None:
        names.add(task_rate(workflow, spec.name))
    if spec.pool is not None:
        names.add(pool_rate(spec.pool))
    return frozenset(names)


class Room:
    """How many more launches may fit below limits that are known to be narrow. Below all others: any number."""

    def __init__(self) -> None:
        self._left: dict[str, int] = {}

    def __bool__(self) -> bool:
        """Whether any is known."""
        return bool(self._left)

    def is_there_for(self, limits: Iterable[str]) -> bool:
        left = self._left
        if left:
            for name in limits:  # a plain loop: asked for every task that is ready
                if left.get(name, 1) <= 0:
                    return False
        return True

    def take(self, limits: Iterable[str]) -> None:
        """By a launch."""
        left = self._left
        if left:
            for name in limits:
                if left.get(name):
                    left[name] -= 1

    def give_back(self, limits: Iterable[str], ends: int = 1) -> None:
        """By an end, or by several."""
        for name in limits if self._left else ():
            if name in self._left:
                self._left[name] += ends

    def use_up(self, limits: Iterable[str]) -> None:
        """They turned a launch away."""
        self._left |= dict.fromkeys(limits, 0)

    def below(self, limit: str) -> int | None:
        """None if nothing is known."""
        return self._left.get(limit)

    def copy(self) -> Room:
        copied = Room()
        copied._left = dict(self._left)
        return copied


UNKNOWN = Room()
"""Nothing is taken from what is not known, so it stays as it is."""

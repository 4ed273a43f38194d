"""Which limits a launch counts against. They are enforced inside the commit, by counting rows."""

from __future__ import annotations

from typing import TypeAlias

from ork.model.workflow import TaskSpec

EVERYTHING = "*"  # every active attempt of the installation
RATE = "rate:"  # what limits on starts begin with; nobody holds those

Lane: TypeAlias = frozenset[str]
"""Tasks that count against the same limits wait in the same lane."""


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

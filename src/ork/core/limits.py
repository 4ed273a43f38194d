"""Which limits a launch counts against. They are enforced inside the commit, by counting rows."""

from __future__ import annotations

from typing import TypeAlias

from ork.model.workflow import TaskSpec

EVERYTHING = "*"  # every active attempt of the installation

Lane: TypeAlias = frozenset[str]
"""Tasks that count against the same limits wait in the same lane."""


def limit_names(executor: str, pool: str | None) -> tuple[str, ...]:
    names = (EVERYTHING, f"executor:{executor}")
    return names if pool is None else (*names, f"pool:{pool}")


def limits_of(spec: TaskSpec) -> Lane:
    return frozenset(limit_names(spec.executor, spec.pool))

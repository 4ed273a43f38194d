"""How much of everything is measured."""

from __future__ import annotations

from ork.model.record import Record


class Scale(Record):
    """`quick` looks, the named scenarios measure."""

    repeats: int
    chain: int
    fanout: int
    shared: int
    engine: int
    triggers: int
    cold_repeats: int
    idle_seconds: float


QUICK = Scale(repeats=1, chain=10, fanout=60, shared=200, engine=2_000, triggers=15, cold_repeats=3, idle_seconds=2)
FULL = Scale(
    repeats=5, chain=40, fanout=500, shared=2_000, engine=10_000, triggers=200, cold_repeats=11, idle_seconds=30
)

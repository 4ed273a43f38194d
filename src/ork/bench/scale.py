"""The sizes of measurements."""

from __future__ import annotations

from ork.model.record import Record, replaced


class Scale(Record):
    """Numbers of tasks, runs and repeats. Those of `wide`, `deep` and `history` are measured one after the other.
    Those of `ui` are what its pages show: runs of history, tasks, instances, megabytes of a log, instances of a live run."""

    repeats: int
    chain: int
    fanout: int
    shared: int
    engine: int
    triggers: int
    cold_repeats: int
    idle_seconds: float
    attempts: int
    machine: int
    wide: tuple[int, ...]
    deep: tuple[int, ...]
    history: tuple[int, ...]
    ui_runs: int
    ui_deep: tuple[int, ...]
    ui_wide: int
    ui_log_mb: int
    ui_live: int


QUICK = Scale(
    repeats=1,
    chain=10,
    fanout=60,
    shared=200,
    engine=2_000,
    triggers=15,
    cold_repeats=3,
    idle_seconds=2,
    attempts=60,
    machine=2_000,
    wide=(200, 1_000),
    deep=(50, 200),
    history=(0, 2_000),
    ui_runs=1_000,
    ui_deep=(500, 1_000),
    ui_wide=2_000,
    ui_log_mb=4,
    ui_live=50,
)
FULL = Scale(
    repeats=5,
    chain=40,
    fanout=500,
    shared=2_000,
    engine=10_000,
    triggers=200,
    cold_repeats=11,
    idle_seconds=30,
    attempts=500,
    machine=100_000,
    wide=(1_000, 10_000, 100_000),
    deep=(1_000, 10_000, 100_000),
    history=(0, 1_000, 10_000, 100_000, 1_000_000),
    ui_runs=10_000,
    ui_deep=(4_970, 19_880),
    ui_wide=100_000,
    ui_log_mb=200,
    ui_live=3_000,
)
STANDARD = replaced(
    FULL, wide=(1_000, 10_000), deep=(1_000, 10_000), history=(0, 10_000, 100_000), machine=20_000, attempts=200
)
HEAVY = replaced(FULL, chain=200, fanout=5_000, shared=20_000, engine=100_000, triggers=1_000)

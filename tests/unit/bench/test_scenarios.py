from __future__ import annotations

from pathlib import Path

import pytest

from ork.bench.scenarios import SCENARIOS, Scale

TINY = Scale(repeats=1, chain=3, fanout=6, engine=50, cold_repeats=1, idle_seconds=0.2)
PARTS = {
    "chain": {"chain": 3},
    "fanout": {"fanout-python": 6, "fanout-command": 6},
    "engine": {"engine": 50},
    "cold": {"cold-run": 1, "cold-help": 0},
    "idle": {"idle": 0},
}
SHAPE = {"scenario", "tasks", "tasks_per_second", "latency_ms", "rss_mb", "cpu_s", "statements", "floor", "ratio"}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SCENARIOS))
def test_a_scenario_measures_real_work_beside_its_floor(name: str, tmp_path: Path) -> None:
    parts = SCENARIOS[name](TINY, tmp_path)
    assert {part["scenario"]: part["tasks"] for part in parts} == PARTS[name]
    for part in parts:
        assert part.keys() >= SHAPE
        assert part["floor"]["what"]
        assert part["rss_mb"] > 0
        if name != "idle":
            assert part["ratio"] > 0
            assert part["floor"]["seconds"] > 0


@pytest.mark.slow
def test_every_task_of_a_chain_is_timed_in_order(tmp_path: Path) -> None:
    [chain] = SCENARIOS["chain"](TINY, tmp_path)
    assert chain["statements"] > 0
    assert 0 < chain["latency_ms"]["p50"] <= chain["latency_ms"]["p99"] <= chain["seconds"] * 1000
    assert set(chain["stages_ms"]) == {"created_dispatched", "dispatched_started", "started_finished"}


@pytest.mark.slow
def test_an_idle_scheduler_asks_its_store_nothing(tmp_path: Path) -> None:
    [idle] = SCENARIOS["idle"](TINY, tmp_path)
    assert idle["statements"] == 0

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.postgres import server_or_skip

from ork.bench.ground import Ground
from ork.bench.processes import MeasuredProcessError
from ork.bench.scale import QUICK
from ork.bench.scenarios import SCENARIOS
from ork.bench.services import service
from ork.model.record import replaced

TINY = replaced(
    QUICK,
    chain=3,
    fanout=6,
    shared=20,
    engine=50,
    triggers=3,
    cold_repeats=1,
    idle_seconds=0.2,
    attempts=3,
    machine=100,
    wide=(10, 20),
    deep=(5, 10),
    history=(0, 100),
)
PARTS = {
    "chain": {("chain", 3)},
    "fanout": {("fanout", 6)},
    "commands": {("commands", 6)},
    "shared": {("shared", 20)},
    "engine": {("engine-sqlite", 50)},
    "latency": {("latency-sqlite", 20)},
    "cold": {("cold-run", 1), ("cold-help", 0)},
    "idle": {("idle", 0)},
    "memory": {("memory-serve-sqlite", 0), ("memory-attempt-sqlite", 3), ("memory-task", 100)},
    "wide": {("wide-sqlite", 10), ("wide-sqlite", 20)},
    "deep": {("deep-sqlite", 5), ("deep-sqlite", 10)},
    "history": {("history-sqlite", 2)},
}
SHAPE = {"scenario", "tasks", "tasks_per_second", "latency_ms", "rss_mb", "cpu_s", "statements", "floor", "ratio"}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SCENARIOS))
def test_a_scenario_measures_real_work_beside_its_floor(name: str, tmp_path: Path) -> None:
    parts = SCENARIOS[name](TINY, Ground(tmp_path))
    assert {(part["scenario"], part["tasks"]) for part in parts} == PARTS[name]
    for part in parts:
        assert part.keys() >= SHAPE
        assert part["floor"]["what"]
        assert part["rss_mb"] > 0
        if name not in ("idle", "memory"):
            assert part["ratio"] > 0
            assert part["floor"]["seconds"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["engine", "latency", "wide", "history"])
def test_postgres_is_measured_in_databases_that_are_gone_afterwards(name: str, tmp_path: Path) -> None:
    server = server_or_skip()
    databases = server.sql("SELECT count(*) FROM pg_database")
    for part in SCENARIOS[name](TINY, Ground(tmp_path, server.url("postgres"))):
        assert part["scenario"] == f"{name}-postgres"
        assert part["ratio"] > 0
    assert server.sql("SELECT count(*) FROM pg_database") == databases


@pytest.mark.slow
def test_every_task_of_a_chain_is_timed_in_order(tmp_path: Path) -> None:
    [chain] = SCENARIOS["chain"](TINY, Ground(tmp_path))
    assert chain["statements"] > 0
    assert 0 < chain["latency_ms"]["p50"] <= chain["latency_ms"]["p99"] <= chain["seconds"] * 1000
    assert set(chain["stages_ms"]) == {"created_dispatched", "dispatched_started", "started_finished"}


@pytest.mark.slow
def test_an_idle_scheduler_asks_its_store_nothing(tmp_path: Path) -> None:
    [idle] = SCENARIOS["idle"](TINY, Ground(tmp_path))
    assert idle["statements"] == 0


@pytest.mark.slow
def test_a_trigger_is_judged_by_the_time_until_its_task_starts(tmp_path: Path) -> None:
    [latency] = SCENARIOS["latency"](TINY, Ground(tmp_path))
    stages = latency["stages_ms"]
    assert latency["latency_ms"]["p50"] >= max(stages["created_dispatched"]["p50"], stages["dispatched_started"]["p50"])
    assert latency["floor"]["latency_ms"]["p50"] > 0


@pytest.mark.slow
def test_a_history_is_measured_with_what_it_costs_to_look_at_it_and_to_forget_it(tmp_path: Path) -> None:
    empty, filled = SCENARIOS["history"](TINY, Ground(tmp_path))
    assert (empty["size"], filled["size"]) == (0, 100)
    assert filled["costs_ms"].keys() >= {"claim_ms", "commit_ms", "step_ms", "list_ms", "prune_ms"}


@pytest.mark.slow
def test_what_a_memory_scenario_started_is_gone_afterwards(tmp_path: Path) -> None:
    SCENARIOS["memory"](TINY, Ground(tmp_path))
    assert not [process for process in Path("/proc").iterdir() if str(tmp_path) in cwd(process)]


def cwd(process: Path) -> str:
    try:
        return str((process / "cwd").readlink())
    except OSError:
        return ""


@pytest.mark.slow
def test_a_service_that_does_not_stay_is_no_measurement(tmp_path: Path) -> None:
    with (
        pytest.raises(MeasuredProcessError, match="did not stay: error"),
        service(("serve", "--port", "70000"), tmp_path, None) as pid,
    ):
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)

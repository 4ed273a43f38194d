from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from ork.bench.main import NAMES, bench_command, main_part
from ork.bench.scenarios import SCENARIOS
from ork.errors import UsageError

OrkCli = Callable[..., CompletedProcess[str]]


def test_an_unknown_scenario_is_refused_with_the_names_that_exist() -> None:
    with pytest.raises(UsageError) as refused:
        bench_command("fast", False, print)
    assert all(name in str(refused.value.hint) for name in NAMES)


def test_a_store_that_cannot_be_measured_is_refused_before_anything_is() -> None:
    with pytest.raises(UsageError, match="cannot measure on firestore:x"):
        bench_command("quick", False, print, "firestore:x")


def test_the_python_fanout_stands_for_the_whole_when_it_was_measured() -> None:
    chain, fanout = {"scenario": "chain"}, {"scenario": "fanout"}
    assert main_part([chain, fanout]) is fanout
    assert main_part([chain]) is chain


def test_the_command_line_refuses_an_unknown_scenario_as_wrong_use(ork_cli: OrkCli, tmp_path: Path) -> None:
    done = ork_cli("bench", "fast", cwd=tmp_path)
    assert done.returncode == 2
    assert "quick" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_quick_measures_everything_and_answers_in_the_documented_shape(ork_cli: OrkCli, tmp_path: Path) -> None:
    done = ork_cli("bench", "quick", "--json", cwd=tmp_path, timeout=300)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["scenario"] == "quick"
    assert result.keys() >= {
        "tasks",
        "tasks_per_second",
        "latency_ms",
        "rss_mb",
        "cpu_s",
        "statements",
        "floor",
        "ratio",
    }
    assert {part["scenario"].split("-")[0] for part in result["parts"]} == set(SCENARIOS)
    assert result["worse"] == []


def test_what_cannot_be_compared_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text('{"parts": 3}')
    with pytest.raises(UsageError, match="not a result of ours"):
        bench_command("quick", True, print, compare=str(tmp_path / "other.json"))
    with pytest.raises(UsageError, match=r"cannot read .*missing\.json: No such file"):
        bench_command("quick", True, print, compare=str(tmp_path / "missing.json"))

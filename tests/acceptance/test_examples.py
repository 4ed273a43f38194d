"""Every example runs as it stands, through the real command line, and does what its first comment says."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

Finished = tuple[int, dict[str, Any], Path]
RunExample = Callable[..., Finished]
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture
def run_example(tmp_path: Path, ork_cli: Callable[..., CompletedProcess[str]]) -> RunExample:
    def run(name: str, *args: str) -> Finished:
        folder = tmp_path / name
        if not folder.exists():
            shutil.copytree(EXAMPLES / name, folder, ignore=shutil.ignore_patterns(".ork", "out", "__pycache__"))
        done = ork_cli("run", "workflow.yaml", "--json", *args, cwd=folder)
        assert done.stdout.strip(), done.stderr
        return done.returncode, json.loads(done.stdout), folder

    return run


def statuses(run: dict[str, Any]) -> dict[str, str]:
    return {task["name"]: task["status"] for task in run["tasks"]}


def task_of(run: dict[str, Any], name: str) -> dict[str, Any]:
    return next(task for task in run["tasks"] if task["name"] == name)


def test_every_example_validates(ork_cli: Callable[..., CompletedProcess[str]]) -> None:
    files = sorted(str(path) for path in EXAMPLES.glob("*/workflow.yaml"))
    assert len(files) == len([path for path in EXAMPLES.iterdir() if path.is_dir()])
    done = ork_cli("validate", "--json", *files, cwd=EXAMPLES)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(json.loads(done.stdout)["workflows"]) == len(files)


def test_hello_greets_whoever_is_named(run_example: RunExample) -> None:
    code, run, _ = run_example("hello")
    assert (code, run["status"], task_of(run, "greet")["output"]) == (0, "success", "hello, world")
    code, run, _ = run_example("hello", "-p", "name=Ada")
    assert (code, task_of(run, "greet")["output"]) == (0, "hello, Ada")


def test_etl_runs_in_order_and_writes_its_file(run_example: RunExample) -> None:
    code, run, folder = run_example("etl")
    assert code == 0
    assert run["workflow"] == "my_etl"
    assert statuses(run) == {"extract": "success", "transform": "success", "load": "success"}
    extract, transform, load = (task_of(run, name) for name in ("extract", "transform", "load"))
    assert extract["finished_at"] <= transform["started_at"] <= transform["finished_at"] <= load["started_at"]
    assert load["output"] == {"path": "out/totals.json", "customers": 2}
    assert json.loads((folder / "out/totals.json").read_text()) == {"ada": 165, "cyd": 200}


def test_diamond_joins_what_both_branches_returned(run_example: RunExample) -> None:
    code, run, _ = run_example("diamond")
    assert code == 0
    assert task_of(run, "evens")["depends_on"] == ["split"]
    assert task_of(run, "join")["output"] == {"evens": 30, "odds": 25, "total": 55}


def test_retries_takes_exactly_three_executions_every_time(run_example: RunExample) -> None:
    for _ in range(2):
        code, run, _ = run_example("retries")
        fetch = task_of(run, "fetch")
        assert (code, fetch["attempt"]) == (0, 3)
        assert [one["status"] for one in fetch["attempts"]] == ["failed", "failed", "success"]
        assert [one["exit_code"] for one in fetch["attempts"]] == [1, 1, 0]
        assert task_of(run, "parse")["output"] == "answered at attempt 3"


def test_failure_and_cleanup_fails_skips_goes_on_and_cleans_up(run_example: RunExample) -> None:
    code, run, folder = run_example("failure_and_cleanup")
    assert (code, run["status"]) == (1, "failed")
    assert statuses(run) == {
        "prepare": "success",
        "check": "failed",
        "publish": "skipped",
        "archive": "success",
        "cleanup": "success",
    }
    assert "ZeroDivisionError" in json.dumps(task_of(run, "check")["error"])
    assert "check" in task_of(run, "publish")["reason"]
    assert sorted(path.name for path in (folder / "out").iterdir()) == ["archive"]


def test_typed_functions_receive_and_return_their_types(run_example: RunExample) -> None:
    code, run, _ = run_example("typed_functions", "-p", "day=2026-03-01")
    assert code == 0
    summary = task_of(run, "summarise")["output"]
    assert summary["cents_by_status"] == {"paid": 4000, "open": 2000}
    assert summary["oldest_open"]["placed_on"] == "2026-02-28"
    assert task_of(run, "render")["output"] == "01.03.2026; paid: 40.00 EUR; open: 20.00 EUR; oldest open: 2026-02-28"


@pytest.mark.skipif(shutil.which("perl") is None, reason="no perl on this machine")
def test_scripts_in_two_languages_pass_data_on(run_example: RunExample) -> None:
    code, run, _ = run_example("scripts")
    assert code == 0
    assert task_of(run, "collect")["output"] == {"path": "out/text"}
    counted = {"word": "the", "times": 4}
    assert task_of(run, "count")["output"] == counted
    assert task_of(run, "report")["output"] == {"report": counted, "same_in_file": counted}


def test_long_logs_are_kept_whole_and_tricks_stay_bytes(
    run_example: RunExample, ork_cli: Callable[..., CompletedProcess[str]]
) -> None:
    code, run, folder = run_example("long_logs")
    assert code == 0
    assert task_of(run, "chatter")["output"] == {"lines": 250_000}
    chatter = ork_cli("logs", "@last", "chatter", cwd=folder).stdout
    assert len(chatter) > 20_000_000
    assert chatter.count("\n") == 250_001
    tricks = ork_cli("logs", "@last", "tricks", cwd=folder).stdout
    assert "\x1b[2J" in tricks
    assert "\udcff\udcfe" in tricks
    assert tricks.endswith("no newline at the end")

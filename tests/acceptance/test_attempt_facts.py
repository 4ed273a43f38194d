"""What a task keeps about itself, and where it ran, as a person and a program see them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import OrkCli
from tests.serving import serving
from tests.snapshots import readable

FLOW = """
name: measured
tasks:
  load: {file: tasks.py, function: load}
  many: {file: tasks.py, function: each, foreach: [1, 2, 3], depends_on: [load]}
"""
TASKS = """
def load(ctx):
    ctx.log.info("loaded", rows=12, table="a b")
    ctx.metrics.set("rows", 12)
    ctx.metrics.set("seconds", 0.5)

def each(item, ctx):
    ctx.metrics.incr("items", item)
"""


def project(folder: Path) -> Path:
    (folder / "workflow.yaml").write_text(FLOW)
    (folder / "tasks.py").write_text(TASKS)
    return folder


def test_metrics_are_in_show_json_and_the_report(ork_cli: OrkCli, tmp_path: Path) -> None:
    folder = project(tmp_path)
    assert ork_cli("run", cwd=folder).returncode == 0
    assert "rows=12 seconds=0.5" in ork_cli("show", "@last", cwd=folder).stdout
    assert "items=3" in ork_cli("show", "@last", "--instances", cwd=folder).stdout
    tasks = json.loads(ork_cli("show", "@last", "--json", cwd=folder).stdout)["tasks"]
    found = {(task["name"], task["index"]): task["attempts"][0]["metrics"] for task in tasks}
    assert found == {
        ("load", None): {"rows": 12, "seconds": 0.5},
        ("many", 0): {"items": 1},
        ("many", 1): {"items": 2},
        ("many", 2): {"items": 3},
    }
    report = readable(ork_cli("report", "@last", "-o", "-", cwd=folder).stdout)
    assert '"metrics": {"rows": 12, "seconds": 0.5}' in report


def test_fields_of_log_lines_are_text_in_logs_and_fields_in_json(ork_cli: OrkCli, tmp_path: Path) -> None:
    folder = project(tmp_path)
    ork_cli("run", cwd=folder)
    assert ork_cli("logs", "@last", "load", cwd=folder).stdout == 'INFO loaded rows=12 table="a b"\n'
    told = json.loads(ork_cli("logs", "@last", "load", "--json", cwd=folder).stdout)
    assert (told["level"], told["message"], told["fields"]) == ("INFO", "loaded", {"rows": 12, "table": "a b"})


def test_the_process_of_an_attempt_is_in_show_full_and_json(ork_cli: OrkCli, tmp_path: Path) -> None:
    folder = project(tmp_path)
    ork_cli("run", cwd=folder)
    (attempt,) = json.loads(ork_cli("show", "@last", "--json", cwd=folder).stdout)["tasks"][0]["attempts"]
    assert attempt["external_name"].startswith("local:")
    assert attempt["ran_in"]["pid"] > 1
    shown = ork_cli("show", "@last", "--full", cwd=folder).stdout
    assert f"pid {attempt['ran_in']['pid']} on {attempt['ran_in']['host']}" in shown
    assert attempt["external_name"] in shown


@pytest.mark.slow
def test_the_api_prometheus_and_a_client_have_them(
    ork_cli: OrkCli, plain_environment: dict[str, str], tmp_path: Path
) -> None:
    folder = project(tmp_path)
    with serving(folder, plain_environment) as served:
        done = ork_cli("run", cwd=folder, env=served.remote)
        assert done.returncode == 0, done.stderr
        _, runs = served.ask("GET", "/runs")
        _, found = served.ask("GET", f"/runs/{runs['runs'][0]['id']}/attempts")
        load = next(row for row in found["attempts"] if row["task"] == "load")
        assert load["metrics"] == {"rows": 12, "seconds": 0.5}
        assert load["external_name"].startswith("local:")
        assert load["ran_in"]["pid"] > 1
        shown = ork_cli("show", "@last", "--full", cwd=folder, env=served.remote).stdout
        assert "rows=12 seconds=0.5" in shown
        assert f"pid {load['ran_in']['pid']}" in shown
        text = served.ask("GET", "/metrics")[1].decode()
    labels = 'metric="items",task="many",workflow="measured"'
    for line in (f"ork_task_metric_sum{{{labels}}} 6.0", f"ork_task_metric_count{{{labels}}} 3.0"):
        assert line in text
    assert 'ork_task_metric_last{metric="rows",task="load",workflow="measured"} 12.0' in text

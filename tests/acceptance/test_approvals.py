"""Runs that wait for a person: `ork run` does not block, and a list says what waits."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.waiting import wait_until
from tests.loopback import loopback

OrkCli = Callable[..., "subprocess.CompletedProcess[str]"]
Ork = Callable[..., "subprocess.CompletedProcess[str]"]

ASKING = """\
name: asking
tasks:
  build: {command: echo 1}
  ok: {approval: {message: Publish it?, timeout: 2h}, depends_on: [build]}
  publish: {command: touch published, depends_on: [ok]}
"""


@pytest.fixture
def ork(tmp_path: Path, ork_cli: OrkCli) -> Ork:
    (tmp_path / "ork.yaml").touch()
    (tmp_path / "asking.yaml").write_text(ASKING)
    return lambda *args, **options: ork_cli(*args, cwd=tmp_path, **options)


def test_a_run_that_only_waits_for_a_person_ends_and_says_how_to_go_on(tmp_path: Path, ork: Ork) -> None:
    asked = ork("run", "asking.yaml", timeout=60)
    assert asked.returncode == 5
    assert "waits for a person: ok: Publish it?" in asked.stdout
    command = next(line.split() for line in asked.stderr.splitlines() if "ork approve" in line)
    assert ork(*command[1:4]).returncode == 0
    assert (tmp_path / "published").exists()
    assert json.loads(ork("show", "@last", "--json").stdout)["status"] == "success"


def test_why_does_not_ask_for_a_scheduler_where_only_a_person_is_needed(tmp_path: Path, ork: Ork) -> None:
    assert ork("run", "asking.yaml").returncode == 5
    timed = ork("why", "@last").stdout
    assert "start `ork scheduler`" not in timed
    assert "without a decision its timeout has no effect" in timed
    (tmp_path / "asking.yaml").write_text(ASKING.replace(", timeout: 2h", ""))
    assert ork("run", "asking.yaml").returncode == 5
    for asked in (("why", "@last"), ("why", "@last", "ok"), ("why", "@last", "publish")):
        said = ork(*asked).stdout
        assert "scheduler" not in said
        assert "person" in said


def test_json_and_exit_code_tell_a_program(ork: Ork) -> None:
    asked = ork("run", "asking.yaml", "--json")
    assert (asked.returncode, json.loads(asked.stdout)["status"]) == (5, "running")


def test_what_else_can_run_is_run_first(tmp_path: Path, ork: Ork) -> None:
    (tmp_path / "asking.yaml").write_text(ASKING + "  beside: {command: [sh, -c, 'sleep 0.5; touch done_beside']}\n")
    assert ork("run", "asking.yaml").returncode == 5
    assert (tmp_path / "done_beside").exists()


def test_a_question_in_a_sub_workflow_is_shown_as_well(tmp_path: Path, ork: Ork) -> None:
    (tmp_path / "above.yaml").write_text("name: above\ntasks:\n  all: {workflow: asking}\n")
    asked = ork("run", "above.yaml", timeout=60)
    assert (asked.returncode, "ok: Publish it?" in asked.stdout) == (5, True)
    (question,) = json.loads(ork("approvals", "--json").stdout)["approvals"]
    assert ork("approve", question["run"]).returncode == 0
    runs = json.loads(ork("runs", "--json").stdout)["runs"]
    assert {(run["workflow"], run["status"]) for run in runs} == {("above", "success"), ("asking", "success")}


def test_what_waits_is_listed_until_it_is_decided(ork: Ork) -> None:
    assert "nothing waits for approval" in ork("approvals").stderr
    run = ork("run", "asking.yaml", "--json")
    id = json.loads(run.stdout)["id"]
    (question,) = json.loads(ork("approvals", "--json").stdout)["approvals"]
    assert (question["run"], question["task"], question["message"]) == (id, "ok", "Publish it?")
    assert question["since"] < question["due"]
    assert "Publish it?" in ork("approvals").stdout
    assert ork("reject", "@last").returncode == 0
    assert json.loads(ork("approvals", "--json").stdout)["approvals"] == []


def test_a_detached_run_is_created_and_left_to_a_scheduler(ork: Ork) -> None:
    made = ork("run", "asking.yaml", "--detach")
    assert made.returncode == 0
    assert "no scheduler is running" in made.stderr
    assert json.loads(ork("show", made.stdout.strip(), "--json").stdout)["status"] == "pending"
    assert json.loads(ork("run", "asking.yaml", "--detach", "--json").stdout).keys() == {"id"}
    assert ork("tick", "--stay").returncode == 0
    assert len(json.loads(ork("approvals", "--json").stdout)["approvals"]) == 2


def test_watching_goes_on_until_somebody_decides_and_ctrl_c_cancels_nothing(
    tmp_path: Path, ork: Ork, plain_environment: dict[str, str]
) -> None:
    assert ork("run", "asking.yaml").returncode == 5
    watch = subprocess.Popen(
        [sys.executable, "-m", "ork", "watch", "@last"],
        cwd=tmp_path,
        env=plain_environment,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    assert watch.stderr is not None
    assert watch.stderr.readline()
    watch.send_signal(signal.SIGINT)
    assert watch.wait(30) == 130
    assert json.loads(ork("show", "@last", "--json").stdout)["status"] == "running"


def test_a_scheduler_that_does_the_work_makes_no_difference(
    tmp_path: Path, ork: Ork, plain_environment: dict[str, str]
) -> None:
    scheduler = subprocess.Popen(
        [sys.executable, "-m", "ork", "scheduler"], cwd=tmp_path, env=plain_environment, stderr=subprocess.DEVNULL
    )
    try:
        wait_until(lambda: '"kind": "scheduler"' in ork("status", "--json").stdout)
        assert ork("run", "asking.yaml", timeout=60).returncode == 5
        assert ork("approve", "@last").returncode == 0
        wait_until(lambda: json.loads(ork("show", "@last", "--json").stdout)["status"] == "success")
    finally:
        scheduler.terminate()
        scheduler.wait(30)


def test_alert_targets_are_told_once_that_a_task_waits(tmp_path: Path, ork: Ork) -> None:
    with loopback() as site:
        site.answers["/hook"] = (200, {})
        (tmp_path / "ork.yaml").write_text(
            f"alerts: {{ops: {{webhook: {site.url}/hook, on: [approval]}}}}\noutbound: {{allow: [127.0.0.1]}}\n"
        )
        (tmp_path / "asking.yaml").write_text(ASKING.replace("tasks:", "alerts: [ops]\ntasks:"))
        assert ork("run", "asking.yaml").returncode == 5
        assert ork("approve", "@last").returncode == 0
        (told,) = [json.loads(request.body) for request in site.asked]
    assert (told["kind"], told["task"], told["error"]) == ("approval", "ok", None)
    assert told["text"].splitlines() == [
        "asking: ok waits for approval",
        "Publish it?",
        f"`ork approve {told['run']} ok` or `ork reject {told['run']} ok`",
    ]


def test_whoever_started_a_run_cannot_approve_it_where_the_workflow_says_so(tmp_path: Path, ork: Ork) -> None:
    (tmp_path / "asking.yaml").write_text(ASKING.replace("timeout: 2h", "not_by: starter"))
    (tmp_path / "above.yaml").write_text("name: above\ntasks:\n  all: {workflow: asking}\n")
    for file in ("asking.yaml", "above.yaml"):
        asked = ork("run", file)
        assert (asked.returncode, "(anyone but " in asked.stderr) == (5, True), asked.stderr
    for question in json.loads(ork("approvals", "--json").stdout)["approvals"]:
        name = question["for"].removeprefix("anyone but ")
        for look in ([question["run"]], [question["run"], question["task"]]):
            assert f"{name} started the run and may not approve it (`not_by: starter`)" in ork("why", *look).stdout
        refused = ork("approve", question["run"])
        assert (refused.returncode, f"{name} started run" in refused.stderr) == (4, True)
        assert ork("reject", question["run"]).returncode == 0
    ork("deploy", "asking.yaml")
    assert ork("validate", "asking.yaml").returncode == 0
    (tmp_path / "asking.yaml").write_text(ASKING.replace("timeout: 2h", "not_by: nobody"))
    assert "not one of starter" in ork("validate", "asking.yaml").stderr

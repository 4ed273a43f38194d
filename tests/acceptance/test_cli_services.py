"""Several processes on one store: schedulers, ticks, watchers, and people who ask for things meanwhile."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.waiting import wait_until
from tests.serving import start_ork as started_ork

OrkCli = Callable[..., "subprocess.CompletedProcess[str]"]
StartOrk = Callable[..., "subprocess.Popen[str]"]

# Ends when the file `go` appears; tells by the file `ledger` how often it began.
HELD = "[sh, -c, 'echo begun >> ledger; while [ ! -e go ]; do sleep 0.05; done; echo 7']"
WORKFLOW = f"name: held\ntasks:\n  a: {{command: {HELD}}}\n  b: {{command: echo done, depends_on: [a]}}\n"


@pytest.fixture
def start_ork(tmp_path: Path, plain_environment: dict[str, str]) -> Iterator[StartOrk]:
    """Starts `ork …` in the background; what still runs at the end of the test is ended."""
    started: list[subprocess.Popen[str]] = []

    def start(*args: str, **environment: str) -> subprocess.Popen[str]:
        started.append(started_ork(tmp_path, {**plain_environment, **environment}, *args))
        return started[-1]

    yield start
    (tmp_path / "go").touch()
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def ork(tmp_path: Path, ork_cli: OrkCli) -> OrkCli:
    (tmp_path / "workflow.yaml").write_text(WORKFLOW)

    def call(*args: str) -> subprocess.CompletedProcess[str]:
        return ork_cli(*args, cwd=tmp_path)

    return call


@contextmanager
def serving(start_ork: StartOrk, **environment: str) -> Iterator[subprocess.Popen[str]]:
    process = start_ork("scheduler", **environment)
    assert process.stdout is not None
    assert "ready" in process.stdout.readline()
    yield process
    process.terminate()
    assert process.wait(60) == 0


def last(ork: OrkCli) -> dict[str, Any]:
    shape: dict[str, Any] = json.loads(ork("show", "@last", "--json").stdout)
    return shape


def begun(folder: Path) -> bool:
    return (folder / "ledger").exists()


def test_a_scheduler_says_ready_works_and_leaves_cleanly(tmp_path: Path, ork: OrkCli, start_ork: StartOrk) -> None:
    (tmp_path / "go").touch()
    ork("deploy", "workflow.yaml")
    with serving(start_ork) as process:
        triggered = ork("trigger", "held", "--wait")
        assert triggered.returncode == 0, triggered.stderr
        assert len(triggered.stdout.strip()) == 12
        assert json.loads(ork("status", "--json").stdout)["schedulers"][0]["kind"] == "scheduler"
    _, said = process.communicate()
    assert "run started" in said
    assert "run ended" in said
    assert json.loads(ork("status", "--json").stdout)["schedulers"] == []


def test_beside_a_scheduler_run_only_watches_and_ctrl_c_detaches(
    tmp_path: Path, ork: OrkCli, start_ork: StartOrk
) -> None:
    with serving(start_ork):
        process = start_ork("run")
        wait_until(lambda: begun(tmp_path))
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        assert process.returncode == 130
        assert "detached" in said
        assert last(ork)["status"] == "running"
        (tmp_path / "go").touch()
        assert ork("watch", "@last").returncode == 0
    assert (tmp_path / "ledger").read_text() == "begun\n"


def test_run_takes_over_when_the_scheduler_it_watched_is_killed(
    tmp_path: Path, ork: OrkCli, start_ork: StartOrk
) -> None:
    scheduler = start_ork("scheduler")
    assert scheduler.stdout is not None
    scheduler.stdout.readline()
    process = start_ork("run", "--json")
    wait_until(lambda: begun(tmp_path))
    scheduler.kill()
    (tmp_path / "go").touch()
    out, said = process.communicate(timeout=90)
    assert process.returncode == 0, said
    run = json.loads(out)
    assert (run["status"], run["tasks"][0]["attempt"], run["tasks"][0]["output"]) == ("success", 1, 7)
    assert (tmp_path / "ledger").read_text() == "begun\n"


def test_a_timeout_only_stops_waiting_when_another_does_the_work(
    tmp_path: Path, ork: OrkCli, start_ork: StartOrk
) -> None:
    with serving(start_ork):
        assert ork("run", "--timeout", "0.3").returncode == 124
        wait_until(lambda: begun(tmp_path))
        assert last(ork)["status"] == "running"
        (tmp_path / "go").touch()
        assert ork("watch", "@last").returncode == 0


def test_cancel_ends_the_processes_of_a_running_run(tmp_path: Path, ork: OrkCli, start_ork: StartOrk) -> None:
    with serving(start_ork):
        process = start_ork("run")
        wait_until(lambda: begun(tmp_path))
        assert ork("cancel", "@last").returncode == 0
        process.communicate(timeout=60)
        assert process.returncode == 1
    run = last(ork)
    assert [task["status"] for task in run["tasks"]] == ["cancelled", "cancelled"]


def test_cancel_without_a_scheduler_stops_what_is_left_itself(tmp_path: Path, ork: OrkCli, start_ork: StartOrk) -> None:
    process = start_ork("run")
    wait_until(lambda: begun(tmp_path))
    process.kill()
    process.wait()
    assert ork("cancel", "@last").returncode == 0
    assert last(ork)["status"] == "cancelled"
    assert ork("cancel", "@last").returncode == 4


def test_a_paused_run_starts_nothing_new_until_it_is_resumed(tmp_path: Path, ork: OrkCli, start_ork: StartOrk) -> None:
    with serving(start_ork):
        start_ork("run")
        wait_until(lambda: begun(tmp_path))
        assert ork("pause", "@last").returncode == 0
        wait_until(lambda: last(ork)["status"] == "paused")
        assert "paused by" in ork("why", "@last").stdout
        (tmp_path / "go").touch()
        wait_until(lambda: last(ork)["tasks"][0]["status"] == "success")
        assert last(ork)["tasks"][1]["status"] == "pending"
        assert "the run is paused" in ork("why", "@last", "b").stdout
        assert ork("pause", "@last").returncode == 4
        assert ork("resume", "@last").returncode == 0
        assert ork("watch", "@last").returncode == 0


def test_why_answers_while_things_go_on(tmp_path: Path, ork: OrkCli, start_ork: StartOrk) -> None:
    other = "name: other\ntasks:\n  c: {command: 'true'}\n"
    (tmp_path / "other.yaml").write_text(other)
    with serving(start_ork, ORK_MAX_WORKERS="1"):
        start_ork("run")
        wait_until(lambda: begun(tmp_path) and last(ork)["tasks"][0]["status"] == "running")
        assert "running for" in ork("why", "@last", "a").stdout
        assert "last heartbeat" in ork("why", "@last", "a").stdout
        assert "waiting for `a` (running)" in ork("why", "@last", "b").stdout
        ork("deploy", "other.yaml")
        queued = ork("trigger", "other").stdout.strip()
        wait_until(lambda: "queued: the only worker is busy" in ork("why", queued, "c").stdout)
        (tmp_path / "go").touch()
        assert ork("watch", queued).returncode == 0


def test_why_tells_when_and_why_a_task_is_tried_again(tmp_path: Path, ork: OrkCli, start_ork: StartOrk) -> None:
    (tmp_path / "flaky.yaml").write_text(
        "name: flaky\ntasks:\n  a: {command: [sh, -c, 'exit 3'], retries: 2, retry_delay: 1h}\n"
    )
    ork("deploy", "flaky.yaml")
    ork("trigger", "flaky")
    assert "no scheduler is running" in ork("why", "@last").stdout
    wait_until(lambda: json.loads(ork("tick").stdout)["next_wake"] is not None and _is_retrying(ork))
    assert "retry: attempt 2 of 3 at " in ork("why", "@last", "a").stdout
    assert "after exit code 3" in ork("why", "@last", "a").stdout
    assert ork("cancel", "@last").returncode == 0


def test_a_tick_that_stays_leaves_when_nothing_runs_any_more(tmp_path: Path, ork: OrkCli, start_ork: StartOrk) -> None:
    ork("deploy", "workflow.yaml")
    ork("trigger", "held")
    tick = start_ork("tick", "--stay")
    wait_until(lambda: begun(tmp_path))
    ork("trigger", "held")  # what is asked for meanwhile is done as well
    (tmp_path / "go").touch()
    told, _ = tick.communicate(timeout=60)
    assert tick.returncode == 0
    report = json.loads(told)
    assert (report["finished"], report["next_wake"]) in ((1, None), (2, None))
    ork("tick", "--stay")
    assert [run["status"] for run in json.loads(ork("runs", "--json").stdout)["runs"]] == ["success", "success"]


def test_a_tick_that_stays_does_not_wait_for_a_person(tmp_path: Path, ork: OrkCli) -> None:
    (tmp_path / "ask.yaml").write_text("name: ask\ntasks:\n  ok: {approval: true}\n")
    ork("deploy", "ask.yaml")
    ork("trigger", "ask")
    assert ork("tick", "--stay").returncode == 0
    assert last(ork)["status"] == "running"


def _is_retrying(ork: OrkCli) -> bool:
    return last(ork)["tasks"][0]["retry_at"] is not None


def test_logs_are_followed_to_the_end_of_the_run(tmp_path: Path, ork: OrkCli, start_ork: StartOrk) -> None:
    with serving(start_ork):
        start_ork("run")
        wait_until(lambda: begun(tmp_path))
        follower = start_ork("logs", "@last", "-f")
        one = start_ork("logs", "@last", "a", "-f")
        (tmp_path / "go").touch()
        out, _ = follower.communicate(timeout=60)
        assert out.splitlines() == ["a | 7", "b | done"]
        assert one.communicate(timeout=60)[0] == "7\n"


def test_the_same_idempotency_key_names_the_same_run(ork: OrkCli) -> None:
    ork("deploy", "workflow.yaml")
    first = ork("trigger", "held", "--key", "k").stdout
    assert ork("trigger", "held", "--key", "k").stdout == first
    assert json.loads(ork("trigger", "held", "--key", "k", "--json").stdout) == {"id": first.strip()}
    assert len(json.loads(ork("runs", "--json").stdout)["runs"]) == 1
    assert ork("trigger", "nobody").returncode == 3


def test_an_unchanged_file_makes_no_new_version(tmp_path: Path, ork: OrkCli) -> None:
    first = json.loads(ork("deploy", "workflow.yaml", "--json").stdout)["workflows"][0]
    again = json.loads(ork("deploy", "workflow.yaml", "--json").stdout)["workflows"][0]
    assert (first["new"], again["new"], first["version"]) == (True, False, again["version"])
    (tmp_path / "bad.yaml").write_text("name: bad\ntasks: {}\nnonsense: 1\n")
    done = ork("deploy", "workflow.yaml", "bad.yaml")
    assert done.returncode == 2
    assert "Nothing was deployed." in done.stderr


def test_two_schedulers_and_a_run_share_one_store_and_double_nothing(
    tmp_path: Path, ork: OrkCli, start_ork: StartOrk
) -> None:
    (tmp_path / "many.yaml").write_text(
        "name: many\ntasks:\n"
        + "".join(f"  t{number}: {{command: [sh, -c, 'echo $ORK_TASK_NAME >> ledger']}}\n" for number in range(8))
    )
    ork("deploy", "many.yaml")
    with serving(start_ork), serving(start_ork):
        runs = [ork("trigger", "many").stdout.strip() for _ in range(3)]
        assert ork("run", "many.yaml").returncode == 0
        assert [ork("watch", run).returncode for run in runs] == [0, 0, 0]
    assert len((tmp_path / "ledger").read_text().split()) == 32


def test_at_debug_level_each_step_that_did_something_is_a_line(tmp_path: Path, ork_cli: OrkCli) -> None:
    (tmp_path / "workflow.yaml").write_text("name: w\ntasks: {a: {command: echo 1}}\n")
    ork_cli("deploy", cwd=tmp_path)
    ork_cli("trigger", "w", cwd=tmp_path)
    told = ork_cli("tick", "--stay", "--log-level", "debug", "--log-format", "json", cwd=tmp_path).stderr
    steps = [line for line in map(json.loads, told.splitlines()) if line["event"] == "step"]
    assert {"attempt_launched", "run_finished"} <= {name for step in steps for name in step["did"]}
    assert {step["level"] for step in steps} == {"debug"}
    ork_cli("trigger", "w", cwd=tmp_path)
    assert '"step"' not in ork_cli("tick", "--stay", "--log-format", "json", cwd=tmp_path).stderr

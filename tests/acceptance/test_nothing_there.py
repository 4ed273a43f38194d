"""What is not there is said: a project, a store, logs, a scheduler."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.waiting import wait_until
from tests.serving import serving

OrkCli = Callable[..., "subprocess.CompletedProcess[str]"]

FLOW = "name: flow\ntasks:\n  a: {command: echo hello}\n"
NIGHTLY = "name: nightly\nschedule: \"0 2 * * *\"\ntasks:\n  a: {command: 'true'}\n"
LOOKS = (("runs",), ("status",), ("workflows",), ("schedules",), ("show", "@last"), ("logs", "@last"), ("approvals",))
SERVICES = (("tick",), ("scheduler",))


@pytest.mark.parametrize("command", LOOKS + SERVICES, ids=lambda command: str(command[0]))
def test_a_folder_without_a_project_is_an_error(tmp_path: Path, ork_cli: OrkCli, command: tuple[str, ...]) -> None:
    done = ork_cli(*command, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (3, "")
    assert f"there is no Ork project in {tmp_path} or above it" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_tick_needs_no_project_where_a_store_is_named(tmp_path: Path, ork_cli: OrkCli) -> None:
    assert ork_cli("--store", f"sqlite:{tmp_path}/new.db", "tick", cwd=tmp_path).returncode == 0
    assert ork_cli("tick", cwd=tmp_path, env={"ORK_STORE": f"sqlite:{tmp_path}/other.db"}).returncode == 0


def test_a_server_says_that_it_creates_a_project(tmp_path: Path, plain_environment: dict[str, str]) -> None:
    for is_new in (True, False):
        with serving(tmp_path, plain_environment) as served:
            said = served.stop()
        assert (f"a new one is created in {tmp_path}/.ork" in said.partition("\n")[0]) is is_new


@pytest.mark.parametrize("name", ["workflow.yaml", "ork.yaml"])
def test_a_project_that_has_not_run_anything_has_no_runs(tmp_path: Path, ork_cli: OrkCli, name: str) -> None:
    (tmp_path / name).write_text(FLOW if name == "workflow.yaml" else "")
    done = ork_cli("runs", "--json", cwd=tmp_path)
    assert (done.returncode, json.loads(done.stdout)["runs"]) == (0, [])


def test_a_store_that_was_named_and_is_not_there_is_an_error(tmp_path: Path, ork_cli: OrkCli) -> None:
    (tmp_path / "ork.yaml").touch()
    for env, args in (({"ORK_STORE": "sqlite:lost.db"}, ()), ({}, ("--store", "sqlite:lost.db"))):
        done = ork_cli(*args, "runs", cwd=tmp_path, env=env)
        assert done.returncode == 3
        assert f"there is no store {tmp_path}/lost.db" in done.stderr
        assert "ORK_STORE" in done.stderr


def test_a_store_that_cannot_be_reached_is_an_error(tmp_path: Path, ork_cli: OrkCli) -> None:
    (tmp_path / "file").touch()
    done = ork_cli("--store", f"sqlite:{tmp_path}/file/ork.db", "runs", cwd=tmp_path)
    assert (done.returncode, "cannot reach the store" in done.stderr) == (1, True)


def test_a_store_that_has_gone_is_an_error(tmp_path: Path, ork_cli: OrkCli) -> None:
    (tmp_path / "workflow.yaml").write_text(FLOW)
    assert ork_cli("run", cwd=tmp_path).returncode == 0
    for file in (tmp_path / ".ork").glob("ork.db*"):
        file.unlink()
    done = ork_cli("runs", cwd=tmp_path)
    assert (done.returncode, "is missing, though there have been runs" in done.stderr) == (3, True)
    assert ork_cli("plan", "workflow.yaml", cwd=tmp_path).returncode == 0


def test_logs_that_are_gone_are_looked_for_in_a_place_that_is_told(tmp_path: Path, ork_cli: OrkCli) -> None:
    (tmp_path / "workflow.yaml").write_text(FLOW)
    run = json.loads(ork_cli("run", "--json", cwd=tmp_path).stdout)["id"]
    place = tmp_path / ".ork/objects/runs" / run
    assert ork_cli("logs", run, cwd=tmp_path).stderr == ""
    shutil.rmtree(place)
    done = ork_cli("logs", run, "a", cwd=tmp_path)
    assert f"should be in {place}, which is missing" in done.stderr


def test_schedules_and_backfills_without_a_scheduler_say_so_wherever_a_person_looks(
    tmp_path: Path, ork_cli: OrkCli, plain_environment: dict[str, str]
) -> None:
    (tmp_path / "nightly.yaml").write_text(NIGHTLY)

    def ork(*args: str) -> subprocess.CompletedProcess[str]:
        return ork_cli(*args, cwd=tmp_path)

    fires, starts = "schedules fire only while `ork scheduler`", "these runs wait until `ork scheduler`"
    backfill = ("backfill", "nightly", "--from", "2026-01-01", "--to", "2026-01-02")
    assert fires in ork("deploy", "nightly.yaml").stderr
    assert fires in ork("schedules").stderr
    assert starts in ork(*backfill).stderr
    status = ork("status").stdout
    assert fires in status
    assert f"2 runs: no scheduler is running: {starts}" in status
    assert "no scheduler: they do not fire" in ork("doctor").stdout
    assert json.loads(ork("schedules", "--json").stdout)["is_served"] is False
    scheduler = subprocess.Popen(
        [sys.executable, "-m", "ork", "scheduler"], cwd=tmp_path, env=plain_environment, stderr=subprocess.DEVNULL
    )
    try:
        wait_until(lambda: '"is_served": true' in ork("status", "--json").stdout)
        said = [ork(*args) for args in (("deploy", "nightly.yaml"), ("schedules",), backfill, ("status",), ("doctor",))]
        assert not any("no scheduler" in done.stdout + done.stderr for done in said)
    finally:
        scheduler.terminate()
        scheduler.wait(30)

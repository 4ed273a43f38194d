"""Pausing, resuming and draining schedulers by hand, on a real store."""

from __future__ import annotations

import json
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.waiting import wait_until
from tests.postgres import free_port, server_or_skip
from tests.serving import start_ork as started_ork

OrkCli = Callable[..., "subprocess.CompletedProcess[str]"]

HELD = "[sh, -c, 'echo a >> FOLDER/ledger; while [ ! -e FOLDER/go ]; do sleep 0.05; done']"
WORKFLOW = f"name: held\ntasks:\n  a: {{command: {HELD}}}\n  b: {{command: [sh, -c, 'echo b >> FOLDER/ledger'], depends_on: [a]}}\n"
TICKING = "name: often\nschedule: {cron: '* * * * * *', catchup: last}\ntasks:\n  t: {command: [sh, -c, 'echo t >> FOLDER/ticks']}\n"


class Place:
    def __init__(self, folder: Path, cli: OrkCli, environment: dict[str, str]) -> None:
        self.folder = folder
        self._cli = cli
        self._environment = environment
        self.started: list[subprocess.Popen[str]] = []
        for name, text in (("held.yaml", WORKFLOW), ("often.yaml", TICKING)):
            (folder / name).write_text(text.replace("FOLDER", str(folder)))

    def ork(self, *args: str) -> subprocess.CompletedProcess[str]:
        return self._cli(*args, cwd=self.folder, env=self._environment)

    def json(self, *args: str) -> Any:
        return json.loads(self.ork(*args, "--json").stdout)

    def scheduler(self, *options: str) -> subprocess.Popen[str]:
        process = started_ork(self.folder, self._environment, "scheduler", *options)
        self.started.append(process)
        assert process.stdout is not None
        assert "ready" in process.stdout.readline()
        return process

    def ledger(self, name: str = "ledger") -> str:
        file = self.folder / name
        return file.read_text() if file.exists() else ""

    def status(self, run: str) -> str:
        return str(self.json("show", run)["status"])


@pytest.fixture(params=["sqlite", "postgres"])
def place(
    request: pytest.FixtureRequest, tmp_path: Path, ork_cli: OrkCli, plain_environment: dict[str, str]
) -> Iterator[Place]:
    environment = dict(plain_environment)
    if request.param == "postgres":
        server = server_or_skip()
        environment["ORK_STORE"] = server.url(server.new_database())
    made = Place(tmp_path, ork_cli, environment)
    made.ork("deploy", "held.yaml")
    yield made
    (tmp_path / "go").touch()
    for process in made.started:
        if process.poll() is None:
            process.terminate()
        process.communicate(timeout=60)


def test_a_pause_outlives_a_restart_and_what_runs_is_finished(place: Place) -> None:
    first = place.scheduler()
    run = place.ork("trigger", "held").stdout.strip()
    wait_until(lambda: place.ledger() == "a\n")
    assert place.ork("scheduler", "pause", "--all", "--reason", "disk swap").returncode == 0
    first.terminate()
    assert first.wait(60) == 0
    place.scheduler()
    (place.folder / "go").touch()
    wait_until(lambda: place.json("show", run)["tasks"][0]["status"] == "success")
    later = place.ork("trigger", "held").stdout.strip()
    for words in (place.ork("why", run).stdout, place.ork("why", later).stdout, place.ork("status").stdout):
        assert "the installation is paused" in words
        assert "disk swap" in words
        assert "ork scheduler resume --all" in words
    assert "disk swap" in place.ork("doctor").stdout
    (control,) = place.json("status")["controls"]
    assert (control["target"], control["mode"], control["reason"]) == ("*", "paused", "disk swap")
    refused = place.ork("run", "held.yaml")
    assert refused.returncode == 4
    assert "disk swap" in refused.stderr
    assert json.loads(place.ork("tick", "--json").stdout)["launched"] == 0
    assert (place.ledger(), place.status(run), place.status(later)) == ("a\n", "running", "pending")
    assert place.ork("scheduler", "resume", "--all").returncode == 0
    wait_until(lambda: (place.status(run), place.status(later)) == ("success", "success"))
    assert sorted(place.ledger().split()) == ["a", "a", "b", "b"]
    said = place.ork("audit").stdout
    assert "scheduler.pause" in said
    assert "scheduler.resume" in said


def test_a_run_can_be_cancelled_while_all_is_paused(place: Place) -> None:
    place.scheduler()
    place.ork("scheduler", "pause", "--all")
    run = place.ork("trigger", "held").stdout.strip()
    place.ork("cancel", run)
    wait_until(lambda: place.status(run) == "cancelled")
    assert place.ledger() == ""


def test_no_schedule_fires_while_paused_and_catchup_decides_afterwards(place: Place) -> None:
    place.scheduler()
    place.ork("deploy", "often.yaml")
    wait_until(lambda: place.ledger("ticks") != "")
    place.ork("scheduler", "pause", "--all")

    def is_quiet() -> bool:
        before = len(place.json("runs", "--limit", "500")["runs"])
        place.ork("tick")
        place.ork("status")
        return len(place.json("runs", "--limit", "500")["runs"]) == before

    wait_until(is_quiet)
    seen = len(place.json("runs", "--limit", "500")["runs"])
    assert json.loads(place.ork("tick", "--json").stdout)["next_wake"] is None
    place.ork("scheduler", "resume", "--all")
    wait_until(lambda: len(place.json("runs", "--limit", "500")["runs"]) > seen)


def test_one_scheduler_is_drained_exits_and_another_goes_on_with_its_runs(place: Place) -> None:
    process = place.scheduler()
    run = place.ork("trigger", "held").stdout.strip()
    wait_until(lambda: place.ledger() == "a\n")
    (entry,) = place.json("scheduler", "list")["schedulers"]
    assert place.ork("scheduler", "drain", entry["id"][:8]).returncode == 0
    waiting = place.ork("trigger", "held").stdout.strip()
    (place.folder / "go").touch()
    assert process.wait(60) == 0
    assert (place.status(run), place.status(waiting), place.ledger()) == ("running", "pending", "a\n")
    assert place.json("scheduler", "list") == {"schedulers": [], "controls": []}
    place.scheduler()
    wait_until(lambda: (place.status(run), place.status(waiting)) == ("success", "success"))


def test_a_paused_host_gives_its_idle_runs_back_and_stands_by(place: Place) -> None:
    process = place.scheduler()
    (entry,) = place.json("scheduler", "list")["schedulers"]
    assert place.ork("scheduler", "drain", entry["host"], "--wait").stdout.endswith("drained\n")
    run = place.ork("trigger", "held").stdout.strip()
    (place.folder / "go").touch()
    assert place.json("scheduler", "list")["schedulers"][0]["state"] == "draining"
    assert (process.poll(), place.status(run)) == (None, "pending")
    assert place.ork("scheduler", "resume", entry["host"]).returncode == 0
    wait_until(lambda: place.status(run) == "success")


def test_a_scheduler_without_the_api_serves_its_metrics(place: Place) -> None:
    port = free_port()
    process = place.scheduler("--metrics-port", str(port))
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        text = answer.read().decode()
    assert 'ork_seconds_count{work="step"}' in text
    assert "ork_schedulers 1.0" in text
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/runs", timeout=30)
    taken = place.ork("scheduler", "--metrics-port", str(port))
    assert (taken.returncode, "cannot listen on" in taken.stderr) == (2, True)
    process.terminate()
    assert process.wait(60) == 0


def test_mistakes_say_what_there_is(place: Place) -> None:
    assert "name a scheduler, or --all" in place.ork("scheduler", "pause").stderr
    assert "name a scheduler, or --all" in place.ork("scheduler", "pause", "x", "--all").stderr
    unknown = place.ork("scheduler", "pause", "nobody")
    assert (unknown.returncode, "ork scheduler list" in unknown.stderr) == (3, True)
    assert place.ork("scheduler", "resume", "--all").returncode == 4

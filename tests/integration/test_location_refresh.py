"""Images as code locations through a real scheduler: what is pushed is picked up, by one, and only if it is right."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ork.locations.image import LABEL
from tests.acceptance.waiting import PATIENCE_SECONDS, wait_until
from tests.docker import Daemon, Registry, daemon_or_skip, own_registry
from tests.integration.location_images import liar_image, location_image
from tests.serving import Served, serving, start_ork

OrkCli = Callable[..., "subprocess.CompletedProcess[str]"]
FLOW = "name: flow\ntasks:\n  a: {{file: steps.py, function: {function}}}\n"
STEPS = "def one():\n    return 'one'\n\n\ndef two():\n    return 'two'\n"
SAYING = "def word():\n    return '{word}'\n"
ASKING = """
name: flow
tasks:
  before: {file: steps.py, function: word}
  ask: {approval: May it go on, depends_on: [before]}
  after: {file: steps.py, function: word, depends_on: [ask]}
"""


class Team:
    """A registry that somebody pushes to, and a project whose only location is an image in it."""

    def __init__(self, folder: Path, environment: dict[str, str], cli: OrkCli, daemon: Daemon, registry: Registry):
        self.folder = folder
        self.environment = {**environment, "DOCKER_HOST": daemon.url, "DOCKER_CONFIG": str(folder)}
        self._cli = cli
        self._daemon = daemon
        self._registry = registry
        location = f"- {{name: etl, image: '{registry.address}/etl:latest', refresh: '* * * * * *'}}\n"
        (folder / "locations.yaml").write_text(location)
        (folder / "workers.yaml").write_text("default: {where: docker, network: none, memory: 512Mi}\n")
        self._began = time.time()

    def push(self, **files: str) -> str:
        """An image with these files (`_` stands for a dot) becomes the latest one; gives its digest."""
        named = {name.replace("_", "."): text for name, text in files.items()}
        location_image(self._daemon, "etl", {"steps.py": STEPS} | named)
        return self._registry.push(self._daemon, "etl", "etl:latest")

    def push_liar(self, script: str) -> str:
        """The same with this script for its `ork-parse`."""
        liar_image(self._daemon, "etl-liar", script)
        return self._registry.push(self._daemon, "etl-liar", "etl:latest")

    def parsers(self) -> list[str]:
        return self._daemon.docker("ps", "-q", "--filter", f"label={LABEL}").split()

    def ork(self, *args: str) -> subprocess.CompletedProcess[str]:
        return self._cli(*args, cwd=self.folder, env=self.environment)

    def location(self) -> dict[str, Any]:
        found = json.loads(self.ork("locations", "--json").stdout)["locations"]
        return dict(found[0]) if found else {"digest": None, "status": "new"}

    def wait_for(self, **wanted: object) -> dict[str, Any]:
        try:  # a dead scheduler's hold lasts a minute
            wait_until(lambda: wanted.items() <= self.location().items(), 3 * PATIENCE_SECONDS)
        except AssertionError:
            raise AssertionError(f"not {wanted}: {self.location()}") from None
        return self.location()

    def serving(self) -> Any:
        return serving(self.folder, self.environment)

    def parses(self) -> int:
        """How many containers with a parser were made so far."""
        until = f"{time.time():.9f}"
        words = ["--since", f"{self._began:.9f}", "--until", until, "--filter", f"label={LABEL}"]
        told = self._daemon.docker("events", *words, "--filter", "event=create", "--format", "{{.ID}}")
        return len(told.split())


@pytest.fixture
def team(tmp_path: Path, plain_environment: dict[str, str], ork_cli: OrkCli) -> Iterator[Team]:
    daemon = daemon_or_skip()
    with own_registry() as registry:
        team = Team(tmp_path, plain_environment, ork_cli, daemon, registry)
        yield team
        for parser in daemon.containers(LABEL):
            daemon.docker("rm", "-fv", parser)


def origin(team: Team) -> str:
    (row,) = json.loads(team.ork("workflows", "--json").stdout)["workflows"]
    return str(row["origin"])


def test_what_is_pushed_is_picked_up_and_what_is_broken_leaves_the_last_good_version(team: Team) -> None:
    first = team.push(flow_yaml=FLOW.format(function="one"))
    with team.serving() as served:
        assert isinstance(served, Served)
        team.wait_for(digest=first)
        second = team.push(flow_yaml=FLOW.format(function="two"))
        team.wait_for(digest=second, status="ok")
        assert origin(team) == f"location:etl@{second}"
        broken = team.push(flow_yaml=FLOW.format(function="three"))
        shown = team.wait_for(digest=second, status="failed")
        assert (shown["error"]["code"], shown["error"]["digest"]) == ("ORK708", broken)
        assert "`steps.py` has no function `three`" in shown["error"]["output"]
        assert served.ask("GET", "/locations")[1]["locations"][0]["error"] == shown["error"]
        assert "ORK503" in team.ork("locations").stdout
        assert origin(team) == f"location:etl@{second}"
        assert team.parses() == 3


def test_of_three_schedulers_one_parses(team: Team) -> None:
    digest = team.push(flow_yaml=FLOW.format(function="one"))
    schedulers = [start_ork(team.folder, team.environment, "scheduler") for _ in range(3)]
    try:
        for scheduler in schedulers:
            assert scheduler.stdout is not None
            assert "ready" in scheduler.stdout.readline()
        looked_at = team.wait_for(digest=digest)["looked_at"]
        wait_until(lambda: team.location()["looked_at"] != looked_at)
        assert team.parses() == 1
    finally:
        for scheduler in schedulers:
            scheduler.terminate()
            scheduler.communicate(timeout=60)


def test_a_run_stays_with_the_image_it_began_with_and_the_next_one_gets_the_new_one(team: Team) -> None:
    first = team.push(flow_yaml=ASKING, steps_py=SAYING.format(word="old"))
    with team.serving():
        team.wait_for(digest=first)
        old = team.ork("trigger", "flow").stdout.strip()
        wait_until(lambda: "approve" in team.ork("why", old).stdout)
        second = team.push(flow_yaml=ASKING, steps_py=SAYING.format(word="new"))
        team.wait_for(digest=second)
        new = team.ork("trigger", "flow").stdout.strip()
        for run in (old, new):
            wait_until(lambda run=run: "approve" in team.ork("why", run).stdout)
            assert team.ork("approve", run, "ask").returncode == 0
            assert team.ork("watch", run).returncode == 0
        assert [team.ork("output", run, "after").stdout for run in (old, new)] == ['"old"\n', '"new"\n']


def test_a_worker_config_that_is_not_there_is_told_by_the_location(team: Team) -> None:
    team.push(flow_yaml="name: flow\ntasks:\n  a: {file: steps.py, function: one, worker: heavy}\n")
    with team.serving():
        shown = team.wait_for(status="failed")
    assert shown["error"]["code"] == "ORK606"
    assert "workers.yaml has no config `heavy`" in shown["error"]["message"]


def test_a_parser_that_never_ends_holds_up_nothing_and_is_taken_along_at_the_end(team: Team) -> None:
    team.push_liar("while :; do :; done")
    (team.folder / "here.yaml").write_text("name: here\ntasks:\n  a: {command: echo 7}\n")
    with team.serving() as served:
        team.wait_for(status="looking")
        wait_until(lambda: bool(team.parsers()))
        done = team.ork("run", "here.yaml")
        assert done.returncode == 0, done.stderr
        assert team.location()["status"] == "looking"
        assert "Traceback" not in served.stop()
    assert team.parsers() == []
    assert team.location()["status"] == "new"  # whoever comes next looks at once


def test_a_scheduler_killed_while_its_parser_runs_is_followed_by_one_that_clears_up(team: Team) -> None:
    digest = team.push_liar("sleep 1000")
    with team.serving() as served:
        wait_until(lambda: bool(team.parsers()))
        (left,) = team.parsers()
        served.process.kill()
        served.process.wait()
    assert team.parsers() == [left]
    good = team.push(flow_yaml=FLOW.format(function="one"))
    assert good != digest
    with team.serving():
        team.wait_for(digest=good)  # once the dead one's minute is over
        assert left not in team.parsers()

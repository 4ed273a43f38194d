"""Every earlier release beside this one: its schedulers, its running workers and its way back (`docs/upgrades.md`).

The release's own wheel is kept in `tests/golden/<release>`, so that its real processes take part.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.acceptance.waiting import wait_until
from tests.golden.opened import FOLDER, RELEASES
from tests.postgres import server_or_skip

pytestmark = [pytest.mark.slow, pytest.mark.linux]

FLOW = """
name: flow
params: {n: {type: int, default: 1}}
tasks:
  function: {file: tasks.py, function: wait, inputs: {n: params.n}}
  program: {command: [sh, -c, 'echo "program $ORK_RUN_ID $ORK_ATTEMPT" >> ledger; while [ ! -e go ]; do sleep 0.05; done']}
  last: {command: [sh, -c, 'echo "last $ORK_RUN_ID $ORK_ATTEMPT" >> ledger; echo 7'], depends_on: [function, program]}
"""
CODE = """
import os, time

def wait(n):
    with open("ledger", "a") as ledger:
        ledger.write(f"function {os.environ['ORK_RUN_ID']} {os.environ['ORK_ATTEMPT']}\\n")
    while not os.path.exists("go"):
        time.sleep(0.05)
    return n
"""
LEASES = {"ORK_LEASE_SECONDS": "6", "ORK_RENEW_SECONDS": "2"}


class Project:
    """A project, a store, and the commands of two releases on them."""

    def __init__(self, root: Path, old: Path, environment: dict[str, str]) -> None:
        self.root = root
        (root / "flow.yaml").write_text(FLOW)
        (root / "tasks.py").write_text(CODE)
        self._env = {"new": {**environment, **LEASES}}
        self._env["old"] = {**self._env["new"], "PYTHONPATH": str(old)}

    def ask(self, which: str, *words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "ork", *words]
        return subprocess.run(
            command, cwd=self.root, env=self._env[which], capture_output=True, text=True, timeout=120, check=False
        )

    def ork(self, which: str, *words: str) -> str:
        done = self.ask(which, *words)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def trigger(self, which: str) -> str:
        run: str = json.loads(self.ork(which, "trigger", "flow", "--json"))["id"]
        wait_until(lambda: sum(run in line for line in self.begun()) == 2)
        return run

    def status(self, run: str) -> str:
        return str(json.loads(self.ork("new", "show", run, "--json"))["status"])

    def begun(self) -> list[str]:
        ledger = self.root / "ledger"
        return ledger.read_text().splitlines() if ledger.exists() else []

    @contextmanager
    def scheduler(self, which: str) -> Iterator[subprocess.Popen[bytes]]:
        with open(self.root / f"{which}.log", "ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "ork", "scheduler"], cwd=self.root, env=self._env[which], stdout=log, stderr=log
            )
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def expect_each_once(self, *runs: str) -> None:
        wait_until(lambda: all(self.status(run) in ("success", "failed") for run in runs))
        assert [self.status(run) for run in runs] == ["success"] * len(runs)
        assert sorted(self.begun()) == sorted(
            f"{task} {run} 1" for run in runs for task in ("function", "program", "last")
        )


@pytest.fixture(params=RELEASES)
def old(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package of an earlier release."""
    folder = tmp_path_factory.mktemp(f"ork-{request.param}")
    (wheel,) = (FOLDER / request.param).glob("*.whl")
    zipfile.ZipFile(wheel).extractall(folder)
    return folder


@contextmanager
def empty_database() -> Iterator[str]:
    """A database without any schema: the earlier release makes its own."""
    server = server_or_skip()
    database = server.new_database()
    try:
        yield server.url(database)
    finally:
        server.drop_database(database)


@pytest.fixture(params=["sqlite", "postgres"])
def project(
    request: pytest.FixtureRequest, old: Path, tmp_path: Path, plain_environment: dict[str, str]
) -> Iterator[Project]:
    with ExitStack() as stack:
        store = {"ORK_STORE": stack.enter_context(empty_database())} if request.param == "postgres" else {}
        made = Project(tmp_path, old, plain_environment | store)
        assert made.ork("old", "--version") != made.ork("new", "--version")
        made.ork("old", "db", "migrate")
        made.ork("old", "deploy", "flow.yaml")
        yield made
        (tmp_path / "go").touch()


def test_its_running_tasks_are_finished_by_this_release(project: Project) -> None:
    with project.scheduler("old") as scheduler:
        run = project.trigger("old")
        scheduler.send_signal(signal.SIGKILL)
        scheduler.wait()
    project.ork("new", "db", "migrate")
    with project.scheduler("new"):
        (project.root / "go").touch()
        project.expect_each_once(run)


def test_schedulers_of_both_share_a_store(project: Project) -> None:
    with project.scheduler("old") as earlier:
        first = project.trigger("old")
        project.ork("new", "db", "migrate")
        with project.scheduler("new"):
            second = project.trigger("new")
            (project.root / "go").touch()
            project.expect_each_once(first, second)
        assert earlier.poll() is None, (project.root / "old.log").read_text()


def test_it_starts_again_until_the_store_is_migrated(project: Project) -> None:
    (project.root / "go").touch()
    assert "migrat" in project.ask("new", "db", "status").stdout + project.ask("new", "db", "status").stderr
    with project.scheduler("old"):
        run = json.loads(project.ork("old", "trigger", "flow", "--json"))["id"]
        wait_until(lambda: json.loads(project.ork("old", "show", run, "--json"))["status"] == "success")
    project.ork("new", "db", "migrate")
    refused = project.ask("old", "runs")
    assert refused.returncode != 0
    assert "newer" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert project.status(run) == "success"

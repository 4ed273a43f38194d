"""Two machines, each with a container engine and a project folder of its own, under one state and one object store."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.docker import Daemon, busybox, daemon_or_skip, own_daemon
from tests.postgres import fresh_database

pytestmark = pytest.mark.slow

FLOW = """
name: flow
tasks:
  work: {image: busybox, command: [sh, -c, 'while [ ! -e /tmp/go ]; do sleep 0.1; done; echo done'], retries: 1}
"""
WORKERS = "default: {where: docker, network: none}\n"
SETTINGS = {
    "ORK_LEASE_SECONDS": "2",
    "ORK_RENEW_SECONDS": "0.5",
    "ORK_HEARTBEAT_SECONDS": "0.3",
    "ORK_STALE_SECONDS": "2",
}


class Machine:
    """Nothing of the installation is in the project's folder: state and objects are where all machines reach them."""

    def __init__(self, folder: Path, daemon: Daemon, shared: dict[str, str]) -> None:
        self.folder = folder
        self.daemon = daemon
        self.environment = {**shared, **SETTINGS, "DOCKER_HOST": daemon.url}
        folder.mkdir()
        (folder / "flow.yaml").write_text(FLOW)
        (folder / "workers.yaml").write_text(WORKERS)

    def ork(self, *words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "ork", *words], cwd=self.folder, env=self.environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def until(self, is_so: Callable[[], object], seconds: float = 60) -> None:
        end = time.monotonic() + seconds
        while not is_so():
            assert time.monotonic() < end, self.ork("why", "@last") + (self.folder / "log").read_text()
            time.sleep(0.1)

    def run(self) -> dict[str, Any]:
        shown: dict[str, Any] = json.loads(self.ork("show", "@last", "--json"))
        return shown

    @contextmanager
    def scheduler(self) -> Iterator[subprocess.Popen[bytes]]:
        """One that is killed at the end."""
        with open(self.folder / "log", "ab") as log, subprocess.Popen(
            [sys.executable, "-m", "ork", "scheduler"], cwd=self.folder, env=self.environment,
            stdin=subprocess.DEVNULL, stdout=log, stderr=log,
        ) as process:  # fmt: skip
            try:
                yield process
            finally:
                process.kill()


@pytest.fixture(params=["sqlite", "postgres"])
def machines(
    request: pytest.FixtureRequest, tmp_path: Path, plain_environment: dict[str, str]
) -> Iterator[tuple[Machine, Machine]]:
    with ExitStack() as stack:
        first, second = daemon_or_skip(), stack.enter_context(own_daemon())
        for daemon in (first, second):
            busybox(daemon)
        postgres = request.param == "postgres"
        store = stack.enter_context(fresh_database()) if postgres else f"sqlite:{tmp_path}/ork.db"
        shared = {**plain_environment, "ORK_STORE": store, "ORK_OBJECTS": f"file:{tmp_path}/objects"}
        yield Machine(tmp_path / "first", first, shared), Machine(tmp_path / "second", second, shared)
        for name in first.containers(f"ork.store=file:{tmp_path}/objects"):
            first.docker("rm", "-fv", name)


def test_a_machine_that_comes_back_ends_what_was_waited_for(machines: tuple[Machine, Machine]) -> None:
    first, second = machines
    ours = f"ork.store={first.environment['ORK_OBJECTS']}"
    first.ork("deploy", "flow.yaml")
    with first.scheduler():
        first.ork("trigger", "flow")
        first.until(lambda: first.run()["tasks"] and first.run()["tasks"][0]["status"] == "running")
    with second.scheduler():
        second.until(lambda: f"machine {os.uname().nodename} does not answer" in second.ork("why", "@last"))
        assert second.daemon.containers(ours) == []
        with first.scheduler():
            second.until(lambda: not first.daemon.docker("ps", "-q", "--filter", f"label={ours}"))
            second.until(lambda: [each["status"] for each in second.run()["tasks"][0]["attempts"]][:1] == ["lost"])
            second.until(lambda: len(second.run()["tasks"][0]["attempts"]) == 2)
            second.ork("cancel", "@last")
            second.until(lambda: second.run()["status"] == "cancelled")

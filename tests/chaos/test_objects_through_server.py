"""Two machines without a shared folder: one has Postgres and `ork serve`, the other runs the tasks and keeps their documents
on the first. Each has a network of its own, which can be cut between them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.network import Network, network_or_skip
from tests.postgres import Server, free_port, server_or_skip
from tests.serving import Served, scheduler_token

from .judge import eventually

pytestmark = pytest.mark.slow

ORK = [sys.executable, "-m", "ork"]
ETL = Path(__file__).resolve().parents[2] / "examples/etl"
PATIENCE_SECONDS = 90.0
CUT_SECONDS = 30.0
# The task says that it has begun, and ends when it is told to.
WAITING = """
name: waiting
tasks:
  work:
    command: [sh, -c, "echo begun; touch begun; while [ ! -e go ]; do sleep 0.1; done; echo done; touch done"]
"""


class Machine:
    """A folder, and the network it is in."""

    def __init__(self, folder: Path, inside: list[str], environment: dict[str, str]) -> None:
        folder.mkdir()
        self.folder, self._inside = folder, inside
        own = {name: value for name, value in os.environ.items() if not name.startswith("ORK_")}
        self.environment = own | environment

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Its errors are in `said.log`."""
        with open(self.folder / "said.log", "a") as said:
            return subprocess.Popen(
                [*self._inside, *ORK, *words], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=said, text=True,
            )  # fmt: skip

    def ork(self, *words: str, **environment: str) -> str:
        """What it prints. It may fail."""
        done = subprocess.run(
            [*self._inside, *ORK, *words], cwd=self.folder, env=self.environment | environment,
            capture_output=True, text=True, timeout=PATIENCE_SECONDS,
        )  # fmt: skip
        return done.stdout + done.stderr

    def show(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.ork("show", "@last", "--json"))
        return found


class Pair:
    """`home` keeps state and documents, `away` runs the tasks."""

    def __init__(self, folder: Path, network: Network, stack: ExitStack, pace: dict[str, str]) -> None:
        self._stack, self.network = stack, network
        address = network.join("home")
        network.join("away")
        self.database = Server(server_or_skip().bin, host=address, inside=network.inside("home"))
        stack.callback(self.database.remove)
        store = {"ORK_STORE": self.database.url(self.database.new_database()), **pace}
        self._port = str(free_port())
        self.home = Machine(folder / "home", network.inside("home"), store)
        self.home.ork("db", "migrate")
        objects = {"ORK_OBJECTS": f"http://{address}:{self._port}?insecure=true"}
        self.away = Machine(folder / "away", network.inside("away"), store | objects)
        self.away.environment["ORK_TOKEN"] = scheduler_token(
            self.home.folder, self.home.environment, network.inside("home")
        )
        self._address = address
        self.serve()

    def serve(self) -> None:
        words = ("serve", "--host", self._address, "--port", self._port, "--allowed-host", self._address)
        self.serving = self.home.start(*words, "--no-scheduler")
        self._stack.callback(_end, self.serving)
        Served(self.serving, self.home.folder)

    def schedule(self) -> subprocess.Popen[str]:
        scheduler = self.away.start("scheduler")
        self._stack.callback(_end, scheduler)
        return scheduler

    def begin(self) -> None:
        """A run whose task is at work."""
        (self.away.folder / "waiting.yaml").write_text(WAITING)
        self.away.ork("deploy", "waiting.yaml")
        self.schedule()
        self.away.ork("trigger", "waiting")
        self.eventually(lambda: (self.away.folder / "begun").exists())

    def eventually(self, is_so: Callable[[], bool]) -> None:
        eventually(is_so, PATIENCE_SECONDS)

    def ends_as(self, status: str) -> None:
        """By what the database says, so that a cut network does not matter."""
        self.eventually(lambda: self.home.show()["status"] in ("success", "failed"))
        assert self.home.show()["status"] == status, self.away.ork("logs", "@last")


def _end(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        process.kill()
    process.communicate()


@pytest.fixture
def pair(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Pair]:
    network = network_or_skip()
    with ExitStack() as stack:
        stack.callback(network.remove)
        yield Pair(tmp_path, network, stack, getattr(request, "param", {}))


def test_the_sample_runs_on_a_machine_without_the_folder(pair: Pair) -> None:
    shutil.copytree(ETL, pair.away.folder, dirs_exist_ok=True)
    said = pair.away.ork("run", "workflow.yaml")
    assert "3 succeeded" in said, said
    for machine in (pair.away, pair.home):
        assert "read 4 orders" in machine.ork("logs", "@last")
        assert json.loads(machine.ork("output", "@last", "transform")) == {"ada": 165, "cyd": 200}
        found = machine.ork("doctor")
        assert "✗" not in found, found
    assert not (pair.away.folder / ".ork/objects").exists()
    assert list((pair.home.folder / ".ork/objects/runs").iterdir())


def test_a_run_survives_the_death_of_the_server(pair: Pair) -> None:
    """The task goes on, its worker tries again, and the run ends when the server is back."""
    pair.begin()
    pair.serving.send_signal(signal.SIGKILL)
    pair.serving.wait()
    (pair.away.folder / "go").touch()
    pair.eventually(lambda: (pair.away.folder / "done").exists())
    assert pair.home.show()["status"] == "running"
    pair.serve()
    pair.ends_as("success")
    assert [each["status"] for each in pair.home.show()["tasks"][0]["attempts"]] == ["success"]
    assert "begun\ndone\n" in pair.home.ork("logs", "@last", "work")


def test_a_run_survives_a_network_that_is_cut_for_half_a_minute(pair: Pair) -> None:
    pair.begin()
    pair.network.cut("away")
    with pytest.raises(subprocess.TimeoutExpired):
        pair.serving.wait(CUT_SECONDS)
    pair.network.heal("away")
    (pair.away.folder / "go").touch()
    pair.ends_as("success")
    assert [each["status"] for each in pair.home.show()["tasks"][0]["attempts"]] == ["success"]


@pytest.mark.parametrize("pair", [{"ORK_HEARTBEAT_SECONDS": "1", "ORK_STALE_SECONDS": "8"}], indirect=True)
def test_a_worker_that_cannot_reach_the_server_ends_its_task(pair: Pair) -> None:
    """In time: before its scheduler, or another one, gives it up and starts it again."""
    pair.begin()
    assert _processes_in(pair.away.folder)
    pair.serving.send_signal(signal.SIGSTOP)
    eventually(lambda: not _processes_in(pair.away.folder), 8.0)
    pair.serving.send_signal(signal.SIGCONT)
    pair.ends_as("failed")
    assert not (pair.away.folder / "done").exists()


def _processes_in(folder: Path) -> list[str]:
    """Shells of tasks that work in the folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            is_shell = b"\0-c\0echo begun" in (process / "cmdline").read_bytes()
            if is_shell and (process / "cwd").resolve() == folder:
                found.append(process.name)
        except OSError:
            continue
    return found


def test_a_token_that_is_revoked_or_of_another_role_is_named_as_what_is_wrong(pair: Pair) -> None:
    tokens = json.loads(pair.home.ork("token", "list", "--json"))["tokens"]
    pair.home.ork("token", "revoke", next(each["id"] for each in tokens if each["role"] == "scheduler"))
    for words in (("doctor",), ("scheduler",)):
        said = pair.away.ork(*words)
        assert "does not accept the token in ORK_TOKEN: this token is unknown or revoked" in said, said
        assert "ork token create --role scheduler" in said
    viewer = pair.home.ork("token", "create", "--role", "admin").strip()
    assert "is not a scheduler's" in pair.away.ork("doctor", ORK_TOKEN=viewer)
    assert "needs a scheduler's token" in pair.away.ork("doctor", ORK_TOKEN="")
    pair.serving.kill()
    pair.serving.wait()
    assert "cannot reach the server that keeps the documents" in pair.away.ork("doctor")
    assert "waiting" not in pair.away.ork("runs")  # the state can be read all the same

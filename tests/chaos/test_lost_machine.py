"""A machine that is gone with everything on it: a scheduler and its task die together with their pid namespace, as with a
container, a pod or a virtual machine, and whoever comes next can neither see nor ask anything of them. On both stores."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.postgres import fresh_database

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="needs root and unshare"),
]
FLOW = """
name: flow
tasks:
  work:
    command: [sh, -c, "if [ -e begun ]; then exit 0; fi; touch begun; exec sleep 600"]
    retries: 1
    on_unreachable: {way}
"""
SETTINGS = {
    "ORK_LEASE_SECONDS": "2",
    "ORK_RENEW_SECONDS": "0.5",
    "ORK_HEARTBEAT_SECONDS": "0.3",
    "ORK_STALE_SECONDS": "2",
}
ORK = [sys.executable, "-m", "ork"]


class Project:
    def __init__(self, folder: Path, way: str, store: dict[str, str]) -> None:
        self.folder = folder
        self.env = {**os.environ, **SETTINGS, **store}
        (folder / "flow.yaml").write_text(FLOW.format(way=way))

    def ork(self, *words: str, **options: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*ORK, *words], cwd=self.folder, env=self.env, capture_output=True, text=True, timeout=60, **options
        )

    def lose_a_machine(self) -> None:
        """Begins a run in a namespace of its own, and ends that when its task is under way."""
        inside = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
        with subprocess.Popen(
            [*inside, *ORK, "run", "flow.yaml"],
            cwd=self.folder,
            env=self.env,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as outer:
            self.until(
                lambda: self.run()["tasks"][0]["status"] == "running" if (self.folder / "begun").exists() else False
            )
            os.kill(outer.pid, signal.SIGKILL)

    def until(self, is_so: Any, seconds: float = 60) -> None:
        end = time.monotonic() + seconds
        while not is_so():
            assert time.monotonic() < end, self.ork("why", self.id()).stdout
            time.sleep(0.1)

    def id(self) -> str:
        runs = json.loads(self.ork("runs", "--json").stdout)["runs"]
        return str(runs[0]["id"])

    def run(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.ork("show", self.id(), "--json").stdout)
        return found

    def ends(self) -> list[str]:
        return [attempt["status"] for attempt in self.run()["tasks"][0]["attempts"]]


Make = Callable[[str], Project]


@pytest.fixture(params=["sqlite", "postgres"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    """Makes a project whose task has the given `on_unreachable`."""
    with ExitStack() as stack:
        store = {"ORK_STORE": stack.enter_context(fresh_database())} if request.param == "postgres" else {}
        yield lambda way: Project(tmp_path, way, store)


@contextmanager
def scheduler(project: Project) -> Iterator[None]:
    """One that is ended whatever happens: a test that fails does not wait for it."""
    with subprocess.Popen(
        [*ORK, "scheduler"], cwd=project.folder, env=project.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as serving:
        try:
            yield
        finally:
            serving.terminate()


def test_the_next_scheduler_finishes_the_run(make: Make) -> None:
    project = make("retry")
    project.lose_a_machine()
    with scheduler(project):
        project.until(lambda: project.run()["status"] == "success")
    assert project.ends() == ["lost", "success"]


def test_separate_ticks_finish_the_run(make: Make) -> None:
    project = make("retry")
    project.lose_a_machine()
    project.until(lambda: project.ork("tick").returncode == 0 and project.run()["status"] == "success")
    assert project.ends() == ["lost", "success"]


def test_a_cancel_ends_it_in_bounded_time(make: Make) -> None:
    project = make("retry")
    project.lose_a_machine()
    assert project.ork("cancel", project.id()).returncode == 0
    project.until(lambda: project.ork("tick").returncode == 0 and project.run()["status"] == "cancelled")
    assert project.ends() == ["cancelled"]


def test_what_is_to_be_waited_for_waits_until_a_person_declares_it_dead(make: Make) -> None:
    project = make("wait")
    project.lose_a_machine()
    host = os.uname().nodename
    early = project.ork("declare-dead", project.id(), "work", "--detach")
    assert (early.returncode, "work" in early.stderr) == (4, True), early.stderr
    with scheduler(project):
        declare = f"`ork declare-dead {project.id()[:4]}"
        project.until(
            lambda: f"if machine {host} does not answer, it is waited for" in project.ork("why", project.id()).stdout
        )
        assert declare in project.ork("why", project.id()).stdout
        assert project.ends() == ["running"]
        said = project.ork("declare-dead", project.id(), "work")
        assert said.returncode == 0, said.stderr
        project.until(lambda: project.run()["status"] == "success")
    assert project.ends() == ["lost", "success"]
    assert "run.declare-dead" in project.ork("audit").stdout


@pytest.mark.parametrize("detach", [False, True])
def test_without_a_scheduler_whoever_declares_it_dead_goes_on_with_the_run(make: Make, detach: bool) -> None:
    project = make("wait")
    project.lose_a_machine()
    project.until(lambda: project.ork("tick").returncode == 0 and "declare-dead" in project.ork("why", "@last").stdout)
    said = project.ork("declare-dead", "@last", "work", *(["--detach"] if detach else []))
    assert said.returncode == 0, said.stderr
    if detach:
        assert "no scheduler is running: `ork tick` or `ork scheduler` carries it out" in said.stdout
        assert project.ends() == ["running"]
        project.until(lambda: project.ork("tick").returncode == 0 and project.run()["status"] == "success")
    assert project.run()["status"] == "success", said.stdout + said.stderr
    assert project.ends() == ["lost", "success"]


def test_a_cancel_of_what_is_waited_for_says_so_and_returns(make: Make) -> None:
    project = make("wait")
    project.lose_a_machine()
    project.until(lambda: not json.loads(project.ork("status", "--json").stdout)["schedulers"])
    said = project.ork("cancel", project.id())
    assert said.returncode == 0, said.stderr
    assert "it is waited for (on_unreachable: wait); `ork declare-dead " in said.stderr
    assert project.ends() == ["running"]


def test_a_tick_does_not_stay_for_what_only_a_person_can_end(make: Make) -> None:
    project = make("wait")
    project.lose_a_machine()

    def is_waited_for() -> bool:
        assert project.ork("tick").returncode == 0  # one that stayed would be ended after 60 s
        return "declare-dead" in project.ork("why", "@last").stdout

    project.until(is_waited_for)
    assert project.ork("tick").returncode == 0

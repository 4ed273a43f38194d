"""A shared worker that is frozen right after its process won an attempt's gate: its living scheduler ends the attempt."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.waiting import wait_until
from tests.integration.workshop import is_alive

# The attempt named in the file `freeze` stops its worker as its first act; the gate has been won by then.
TASKS = """
import os, signal, time

def main():
    me = f"{os.environ.get('ORK_PARALLEL_INDEX', '')}.{os.environ['ORK_ATTEMPT']}"
    with open('ledger', 'a') as file:
        file.write(me + ' ')
    if me == open('freeze').read():
        with open('frozen', 'w') as file:
            file.write(str(os.getppid()))
        os.kill(os.getppid(), signal.SIGSTOP)
        time.sleep(0.2)
    return me
"""
FLOW = """
name: flow
defaults: {{isolation: shared, retries: 1, retry_delay: 0, retry_on: [lost, timeout]{more}}}
tasks:
  a: {{file: tasks.py, function: main, parallel: 8}}
"""
# The first attempt of a new worker is known to be taken; a later one was handed over ahead, and is not.
PLACES = ["0.1", "3.1"]


class Scene:
    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder = folder
        self._environment = environment
        (folder / "tasks.py").write_text(TASKS)

    def run(self, freeze: str, *, more: str = "", **settings: str) -> subprocess.Popen[str]:
        (self.folder / "freeze").write_text(freeze)
        (self.folder / "flow.yaml").write_text(FLOW.format(more=more))
        quick = {"ORK_STOP_GRACE_SECONDS": "0.5", **settings}
        return subprocess.Popen(
            [sys.executable, "-m", "ork", "run", "flow.yaml"],
            cwd=self.folder,
            env={**self._environment, **quick},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def ork(self, *words: str) -> str:
        command = [sys.executable, "-m", "ork", *words]
        done = subprocess.run(command, cwd=self.folder, env=self._environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    @property
    def frozen(self) -> int | None:
        path = self.folder / "frozen"
        text = path.read_text() if path.exists() else ""
        return int(text) if text else None

    def wait_until_frozen(self) -> None:
        wait_until(lambda: self.frozen is not None)

    @property
    def starts(self) -> list[str]:
        return (self.folder / "ledger").read_text().split()


@pytest.fixture
def scene(tmp_path: Path, plain_environment: dict[str, str]) -> Iterator[Scene]:
    made = Scene(tmp_path, plain_environment)
    yield made
    if made.frozen is not None and is_alive(made.frozen):
        subprocess.run(["kill", "-KILL", str(made.frozen)], check=False)


def ended(run: subprocess.Popen[str], seconds: float = 60) -> int:
    try:
        return run.wait(seconds)
    finally:
        run.kill()
        if run.stdout is not None:
            print(run.stdout.read())


@pytest.mark.parametrize("place", PLACES)
def test_silence_after_the_gate_is_noticed_and_the_retry_rule_decides(scene: Scene, place: str) -> None:
    run = scene.run(place, ORK_STALE_SECONDS="2", ORK_HEARTBEAT_SECONDS="0.5")
    assert ended(run) == 0
    assert not is_alive(scene.frozen or 0)
    assert len(scene.starts) == len(set(scene.starts)), "an attempt started twice"


@pytest.mark.parametrize("place", PLACES)
def test_its_timeout_counts_from_the_gate(scene: Scene, place: str) -> None:
    began = time.monotonic()
    run = scene.run(place, more=", timeout: 1")
    assert ended(run) == 0
    assert not is_alive(scene.frozen or 0)
    assert time.monotonic() - began < 59  # and not the silence, which is noticed after a minute
    assert len(scene.starts) == len(set(scene.starts))


@pytest.mark.parametrize("place", PLACES)
def test_a_cancel_ends_it(scene: Scene, place: str) -> None:
    run = scene.run(place)
    scene.wait_until_frozen()
    scene.ork("cancel", json.loads(scene.ork("runs", "--json"))["runs"][0]["id"])
    assert ended(run, 30) != 0
    assert not is_alive(scene.frozen or 0)
    assert len(scene.starts) == len(set(scene.starts))

"""`ork dev`: one terminal in which a project is served, watched and deployed."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.acceptance.waiting import wait_until
from tests.serving import start_ork

OrkCli = Callable[..., "subprocess.CompletedProcess[str]"]
FLOW = "name: {name}\ntasks:\n  a: {{command: 'echo {word}'}}\n"


class Dev:
    """A running `ork dev`, what it said so far, and the command line in another terminal."""

    def __init__(self, folder: Path, environment: dict[str, str], cli: OrkCli) -> None:
        self.folder = folder
        self._cli = cli
        self.process = start_ork(folder, environment, "dev", "--no-api")
        self.said = ""
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def write(self, name: str, word: str = "7", text: str = FLOW) -> None:
        path = self.folder / f"{name}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text.format(name=path.stem, word=word))

    def wait_for(self, words: str) -> None:
        wait_until(lambda: words in self.said)

    def enabled(self) -> dict[str, bool]:
        done = self._cli("workflows", "--json", cwd=self.folder)
        return {row["name"]: row["enabled"] for row in json.loads(done.stdout)["workflows"]}

    def ork(self, *args: str) -> subprocess.CompletedProcess[str]:
        return self._cli(*args, cwd=self.folder)

    def stop(self) -> int:
        self.process.send_signal(signal.SIGINT)
        code = self.process.wait(60)
        self._reader.join()
        return code

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.said += line


@pytest.fixture
def dev(tmp_path: Path, plain_environment: dict[str, str], ork_cli: OrkCli) -> Iterator[Dev]:
    (tmp_path / "first.yaml").write_text(FLOW.format(name="first", word="7"))
    running = Dev(tmp_path, plain_environment, ork_cli)
    running.wait_for("✓ first  version")
    yield running
    if running.process.poll() is None:
        running.process.kill()
        running.process.wait()
    for stream in (running.process.stdout, running.process.stderr):
        assert stream is not None
    running._reader.join()


def test_what_is_there_is_deployed_and_runs_and_ctrl_c_ends_it_well(dev: Dev) -> None:
    done = dev.ork("trigger", "first", "--wait")
    assert done.returncode == 0, done.stderr
    dev.wait_for("run ended")
    assert dev.stop() == 0
    assert "Traceback" not in dev.said


def test_a_change_is_deployed_and_a_mistake_shown_with_its_place_while_the_rest_goes_on(dev: Dev) -> None:
    dev.write("second")
    dev.wait_for("✓ second  version")
    dev.write("second", text="name: second\ntasks:\n  a: {{comand: 'true'}}\n")
    dev.wait_for("error[ORK101]")
    dev.wait_for("--> second.yaml:3:7")
    dev.wait_for("the last valid versions stay")
    assert dev.enabled() == {"first": True, "second": True}
    dev.write("second", word="8")
    dev.wait_for("no more errors")


def test_a_file_that_goes_disables_its_workflow_and_one_that_comes_back_enables_it(dev: Dev) -> None:
    (dev.folder / "first.yaml").rename(dev.folder / "first.txt")
    dev.wait_for("⊘ first  is gone: disabled")
    assert dev.enabled() == {"first": False}
    dev.said = ""
    (dev.folder / "first.txt").rename(dev.folder / "first.yaml")
    dev.wait_for("✓ first  version")
    assert dev.enabled() == {"first": True}


def test_a_folder_that_is_a_location_is_looked_into_as_soon_as_it_changes(
    tmp_path: Path, plain_environment: dict[str, str], ork_cli: OrkCli
) -> None:
    (tmp_path / "locations.yaml").write_text(
        "- {name: inner, path: inner, refresh: '0 0 1 1 *'}\n- {name: away, image: 127.0.0.1:1/x}\n"
    )
    (tmp_path / "inner").mkdir()
    (tmp_path / "outer.yaml").write_text(FLOW.format(name="outer", word="7"))
    dev = Dev(tmp_path, plain_environment, ork_cli)
    try:
        dev.wait_for("✓ outer  version")
        dev.wait_for("location refreshed  location=inner")
        dev.write("inner/found")
        wait_until(lambda: dev.enabled() == {"found": True, "outer": True})
        dev.write("inner/found", text="name: found\ntasks: 3\n")
        dev.wait_for("location failed  error=found.yaml")
        assert "away" not in dev.ork("locations").stdout
    finally:
        assert dev.stop() == 0


def test_a_folder_without_a_workflow_says_so(
    tmp_path: Path, plain_environment: dict[str, str], ork_cli: OrkCli
) -> None:
    running = Dev(tmp_path, plain_environment, ork_cli)
    running.wait_for("there is no workflow here yet")
    running.write("first")
    running.wait_for("✓ first  version")
    assert running.stop() == 0
    assert running.said.count("no workflow here") == 1


def test_a_folder_that_is_not_there_is_not_found(tmp_path: Path, ork_cli: OrkCli) -> None:
    done = ork_cli("dev", "nowhere", cwd=tmp_path)
    assert (done.returncode, "there is no folder nowhere" in done.stderr) == (3, True)

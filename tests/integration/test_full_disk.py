"""A disk that fills up, under the store and under the objects: clear words, nothing half-written, and work goes on."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ork.errors import StoreUnavailableError
from ork.objects import documents
from ork.objects.opening import open_objects
from ork.state.sqlite.failures import file_error, store_error
from tests.acceptance.waiting import wait_until

OrkCli = Callable[..., "subprocess.CompletedProcess[str]"]

FLOW = """\
name: flow
tasks:
  a: {command: [sh, -c, 'echo a >> ledger; while [ ! -e go ]; do sleep 0.02; done; echo "[1, 2]"']}
  b: {command: [sh, -c, 'echo b >> ledger; cat'], depends_on: [a]}
"""

# Less than anybody waits for a lock: a full disk is not a busy store.
TOLD_WITHIN_SECONDS = 20


class SmallDisk:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ballast = folder / "ballast"

    def fill(self, leave: int = 0) -> None:
        descriptor = os.open(self._ballast, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            while not leave or self._free_bytes() > leave:
                os.write(descriptor, b"x" * 4096)
        except OSError:
            assert not leave
        finally:
            os.close(descriptor)

    def _free_bytes(self) -> int:
        found = os.statvfs(self.folder)
        return found.f_bavail * found.f_frsize

    def free(self) -> None:
        self._ballast.unlink()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    mount = tmp_path / "small"
    mount.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(mount)], capture_output=True, text=True
    )
    if done.returncode:
        pytest.skip(f"NOT TESTED, behaviour on a full disk: cannot mount a small one here ({done.stderr.strip()})")
    yield SmallDisk(mount)
    subprocess.run(["umount", "-l", str(mount)], check=True)


class Project:
    """A project with its store or its objects on the small disk."""

    def __init__(self, folder: Path, environment: dict[str, str], where: dict[str, str]) -> None:
        self.folder = folder
        self._environment = {**environment, **where}
        (folder / "workflow.yaml").write_text(FLOW)

    def start(self, *args: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "ork", *args],
            cwd=self.folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=(self.folder / "said").open("w"),
            text=True,
        )

    def ork(self, *args: str) -> tuple[int, str, str]:
        process = self.start(*args)
        try:
            out, _ = process.communicate(timeout=TOLD_WITHIN_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        return process.returncode, out, self.said()

    def said(self) -> str:
        return (self.folder / "said").read_text()

    def go(self) -> None:
        (self.folder / "go").touch()

    def ledger(self) -> str:
        path = self.folder / "ledger"
        return path.read_text() if path.exists() else ""

    def shown(self) -> dict[str, Any]:
        return dict(json.loads(self.ork("show", "@last", "--json")[1]))


@pytest.fixture(params=["file", "journal"])
def objects_on_it(
    request: pytest.FixtureRequest, tmp_path: Path, plain_environment: dict[str, str], disk: SmallDisk
) -> Project:
    return Project(tmp_path, plain_environment, {"ORK_OBJECTS": f"{request.param}:{disk.folder}/objects"})


@pytest.fixture
def store_on_it(tmp_path: Path, plain_environment: dict[str, str], disk: SmallDisk) -> Project:
    return Project(tmp_path, plain_environment, {"ORK_STORE": f"sqlite:{disk.folder}/ork.db"})


def all_whole(folder: Path) -> bool:
    """Every document there is a whole one."""
    objects = open_objects(f"file:{folder}")
    found = [key for key in objects.list("runs") if key.endswith(".json") and not key.endswith(".input.json")]
    return bool(found) and all("signature" in json.loads(objects.get(key) or b"") for key in found)


def status_of_a(folder: Path) -> dict[str, Any] | None:
    objects = open_objects(f"file:{folder}")
    found = [objects.get(key) for key in objects.list("runs") if key.endswith("/a.0.1.status.json")]
    return json.loads(found[0] or b"") if found else None


@pytest.mark.slow
def test_a_run_whose_objects_have_no_room_says_so_and_goes_on_when_there_is(
    objects_on_it: Project, disk: SmallDisk
) -> None:
    project = objects_on_it
    project.go()
    project.ork("tick")  # a new object store gets its identity, for which there must be room
    disk.fill()
    running = project.start("run")
    wait_until(lambda: "the disk is full (trying again)" in project.said())
    assert project.ledger() == ""
    assert open_objects(f"file:{disk.folder}/objects").list("") == ["identity.json"]
    disk.free()
    assert running.wait(60) == 0, project.said()
    assert project.said().count("the disk is full") == 1
    assert project.ledger() == "a\nb\n"
    assert all_whole(disk.folder / "objects")
    assert list((disk.folder / "objects").rglob(".tmp-*")) == []


@pytest.mark.slow
def test_a_new_object_store_without_room_is_an_error_at_the_start(objects_on_it: Project, disk: SmallDisk) -> None:
    disk.fill()
    running = objects_on_it.start("run")
    assert running.wait(60) == 1
    assert "cannot write identity.json: the disk is full" in objects_on_it.said()
    disk.free()
    objects_on_it.go()
    assert objects_on_it.start("run").wait(60) == 0


@pytest.mark.slow
def test_objects_that_run_out_of_room_in_mid_task_lose_nothing(objects_on_it: Project, disk: SmallDisk) -> None:
    project = objects_on_it
    running = project.start("run", "--json")
    wait_until(lambda: project.ledger() == "a\n")
    wait_until(lambda: status_of_a(disk.folder / "objects") is not None)
    disk.fill()
    project.go()
    wait_until(lambda: not _is_running_here(project.folder))
    status = status_of_a(disk.folder / "objects")
    assert status is not None
    assert status["state"] == "running"
    for asked in (["why", "@last"], ["why", "@last", "a"], ["status"]):
        assert "the disk of the object store is full" in project.ork(*asked)[1]
    assert all_whole(disk.folder / "objects")
    disk.free()
    out, _ = running.communicate(timeout=60)
    assert running.returncode == 0, project.said()
    assert "disk" not in project.ork("status")[1]
    assert [task["output"] for task in json.loads(out)["tasks"]] == [[1, 2], [1, 2]]
    assert project.ledger() == "a\nb\n"


def _is_running_here(folder: Path) -> bool:
    """Whether the command itself still lives (its worker may)."""
    for entry in Path("/proc").iterdir():
        try:
            is_shell = entry.name.isdigit() and (entry / "cmdline").read_bytes().startswith(b"sh\0-c\0echo a")
            if is_shell and os.readlink(entry / "cwd") == str(folder):
                return True
        except OSError:
            continue
    return False


LARGE = """\
name: large
tasks:
  a: {command: [sh, -c, 'printf "\\"%0600000d\\"" 0 > $ORK_OUTPUT_FILE']}
  hold: {command: [sh, -c, 'while [ ! -e go ]; do sleep 0.02; done']}
  b: {command: [sh, -c, 'wc -c > seen'], depends_on: [a, hold], inputs: {v: {ref: tasks.a.output}}}
"""


@pytest.mark.slow
def test_a_task_whose_input_finds_no_room_begins_when_there_is(objects_on_it: Project, disk: SmallDisk) -> None:
    project = objects_on_it
    (project.folder / "workflow.yaml").write_text(LARGE)
    running = project.start("run")
    wait_until(lambda: "✓ a" in project.said())
    disk.fill(leave=300_000)
    project.go()
    wait_until(lambda: bool(list((disk.folder / "objects").glob("runs/*/b.0.1.input.json"))))
    with pytest.raises(subprocess.TimeoutExpired):
        running.wait(0.5)
    disk.free()
    assert running.wait(60) == 0, project.said()
    assert (project.folder / "seen").read_text().strip() == str(600_000 + len('{"v":""}'))


def test_a_store_that_cannot_be_made_for_want_of_room_is_told_at_once(store_on_it: Project, disk: SmallDisk) -> None:
    project = store_on_it
    project.go()
    disk.fill()
    for command in (["run"], ["deploy", "workflow.yaml"]):
        code, out, said = project.ork(*command)
        assert (code, out) == (1, "")
        assert "has no space left on its disk" in said
        assert "Free some space" in said
        assert len(said.splitlines()) == 2
    assert project.ledger() == ""
    disk.free()
    assert project.ork("run")[0] == 0
    assert project.ledger() == "a\nb\n"


@pytest.mark.slow
def test_a_store_that_runs_out_of_room_says_so_and_goes_on_when_there_is(store_on_it: Project, disk: SmallDisk) -> None:
    project = store_on_it
    running = project.start("run")
    wait_until(lambda: project.ledger() == "a\n")
    disk.fill()
    project.go()
    wait_until(lambda: "has no space left on its disk" in project.said())
    disk.free()
    assert running.wait(60) == 0, project.said()
    assert "the store works again" in project.said()
    assert project.ledger() == "a\nb\n"
    run = project.shown()
    assert [(task["status"], task["attempt"]) for task in run["tasks"]] == [("success", 1), ("success", 1)]


def test_a_trigger_that_finds_no_room_leaves_no_run_behind(store_on_it: Project, disk: SmallDisk) -> None:
    project = store_on_it
    assert project.ork("deploy", "workflow.yaml")[0] == 0
    disk.fill()
    accepted = []
    for _ in range(40):  # the log that is there already may hold a few more
        code, out, _ = project.ork("trigger", "flow", "--json")
        if code:
            break
        accepted.append(json.loads(out)["id"])
    assert code == 1
    error = json.loads(out)["error"]
    assert (error["code"], "has no space left on its disk" in error["message"]) == ("ORK811", True)
    disk.free()
    runs = json.loads(project.ork("runs", "--json", "--limit", "100")[1])["runs"]
    assert sorted(run["id"] for run in runs) == sorted(accepted)
    assert project.ork("trigger", "flow")[0] == 0


def test_doctor_finds_the_full_disk(store_on_it: Project, disk: SmallDisk) -> None:
    project = store_on_it
    project.ork("deploy", "workflow.yaml")
    disk.fill()
    code, out, _ = project.ork("doctor", "--json")
    assert code == 1
    broken = [check["says"] for check in json.loads(out)["checks"] if check["broken"]]
    assert f"0.0 GiB free at {disk.folder}" in broken


def test_an_input_output_error_on_a_full_disk_is_told_as_a_full_disk(disk: SmallDisk) -> None:
    """SQLite does not always know why a write failed."""
    vague = sqlite3.OperationalError("disk I/O error")
    vague.sqlite_errorcode = sqlite3.SQLITE_IOERR | 3 << 8
    path = str(disk.folder / "ork.db")
    assert "cannot be read or written" in store_error(vague, path).message
    disk.fill()
    error = store_error(vague, path)
    assert isinstance(error, StoreUnavailableError)
    assert "has no space left on its disk" in error.message
    assert "has no space left on its disk" in file_error(OSError(28, "No space left on device"), path).message


def test_a_document_cut_short_is_never_taken_for_real() -> None:
    whole = documents.sign({"v": 1, "attempt": "r/a/0/1", "state": "success"}, "ab" * 32)
    for length in range(len(whole)):
        with pytest.raises(documents.DocumentError):
            documents.open_signed(whole[:length], "ab" * 32)
    assert documents.open_signed(whole, "ab" * 32)["state"] == "success"


def test_doctor_looks_at_the_disk_before_the_store(store_on_it: Project, disk: SmallDisk) -> None:
    project = store_on_it
    project.ork("deploy", "workflow.yaml")
    disk.fill()
    _, out, _ = project.ork("doctor", "--json")
    broken = [check["subject"] for check in json.loads(out)["checks"] if check["broken"]]
    assert broken[0] == "disk"

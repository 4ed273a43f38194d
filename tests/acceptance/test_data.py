"""Values that are not JSON, as a person passes them: between functions, commands, containers and users, with every isolation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import OrkCli
from tests.docker import busybox, daemon_or_skip, python_image

FUNCTIONS = """
from dataclasses import dataclass
from pathlib import Path
import ork

@dataclass
class Report:
    text: ork.File
    rows: int

def make() -> Report:
    Path("report.csv").write_text("a,b\\n1,2\\n")
    return Report(Path("report.csv"), 1)

def folder() -> ork.File:
    Path("made/deep").mkdir(parents=True, exist_ok=True)
    for number in range(3):
        Path(f"made/deep/{number}.txt").write_text(f"file {number}")
    return Path("made")

def each(item: ork.File) -> str:
    return f"{item.name}: {item.path.read_text()}"

def read(make: dict, count) -> list:
    found = make["text"]
    found.path.write_text("changed")  # a copy of its own
    return [type(count).__name__, count.read_bytes().decode(), {"raw": b"\\x00\\xff" * 40_000, "same": make["text"]}]
"""
TASKS = """
name: data
tasks:
  make: {file: tasks.py, function: make}
  folder: {file: tasks.py, function: folder}
  each: {file: tasks.py, function: each, foreach: tasks.folder.output}
  count:
    command: [sh, -c, 'wc -l < "$0" > $ORK_OUTPUT_DIR/lines.txt; ls "$1" >> $ORK_OUTPUT_DIR/lines.txt', {ref: make.text, as: file}, {ref: folder, as: file}]
    output: {from_file: lines.txt}
  read: {file: tasks.py, function: read, depends_on: [make, count]}
"""


class Project:
    def __init__(self, folder: Path, ork: OrkCli) -> None:
        self.folder, self._ork = folder, ork

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def run(self, *, code: int = 0, **environment: str) -> str:
        done = self._ork("run", cwd=self.folder, env=environment)
        assert done.returncode == code, done.stdout + done.stderr
        return str(done.stdout + done.stderr)

    def shown(self, *words: str) -> str:
        done = self._ork("output", "@last", *words, cwd=self.folder)
        assert done.returncode == 0, done.stderr
        return str(done.stdout)

    def output(self, task: str) -> Any:
        return json.loads(self.shown(task, "--json"))

    def left_over(self) -> list[Path]:
        """Folders of files that should be gone."""
        return [*self.folder.rglob("*.inputs"), *self.folder.rglob("*.outputs")]


@pytest.fixture
def project(tmp_path: Path, ork_cli: OrkCli) -> Project:
    return Project(tmp_path, ork_cli)


@pytest.mark.parametrize("isolation", ["fork", "interpreter", "shared"])
@pytest.mark.parametrize("objects", ["file:objects", "journal:objects"])
def test_files_and_bytes_go_from_task_to_task(project: Project, isolation: str, objects: str) -> None:
    project.write("tasks.py", FUNCTIONS)
    project.write("workflow.yaml", TASKS)
    project.run(ORK_ISOLATION=isolation, ORK_OBJECTS=objects)
    assert project.output("each") == [f"deep/{number}.txt: file {number}" for number in range(3)]
    kind, lines, nested = project.output("read")
    assert (kind, lines.split()) == ("File", ["2", "deep"])
    assert nested["raw"]["$ork"]["size"] == 80_000
    assert nested["same"]["$ork"]["sha256"] != project.output("make")["text"]["$ork"]["sha256"], "it was changed"
    assert project.left_over() == []


def test_what_is_shown_and_saved(project: Project) -> None:
    project.write("tasks.py", FUNCTIONS)
    project.write("workflow.yaml", TASKS)
    project.run()
    assert project.shown("make", "--path", "text").startswith("a,b\n1,2\nork.File · report.csv · text/csv · 8 bytes")
    assert "deep/0.txt" in project.shown("folder")
    project.shown("folder", "--to", str(project.folder / "saved"))
    assert (project.folder / "saved/deep/2.txt").read_text() == "file 2"
    project.shown("read", "--path", "[2].raw", "--to", "raw.bin")
    assert (project.folder / "raw.bin").read_bytes() == b"\x00\xff" * 40_000
    project.shown("make", "--to", "make.json")
    assert json.loads((project.folder / "make.json").read_text())["rows"] == 1


@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("def make(): return {'$ork': {}}", "returned the key '$ork': Ork marks references with it, choose another"),
        (
            "import ork\ndef make(): return ork.File('gone')",
            "returned ork.File('gone'), which cannot be read: No such file",
        ),
        ("import ork\ndef make(): return [b'x', ork.File('/dev/tty')]", "not a regular file"),
    ],
)
def test_what_cannot_be_stored_is_a_failure_that_says_why(project: Project, function: str, said: str) -> None:
    project.write("tasks.py", function)
    project.write("workflow.yaml", "name: w\ntasks: {make: {file: tasks.py, function: make}}\n")
    assert said in project.run(code=1)
    assert not [*project.folder.rglob("*.value-*")], "what was stored before is deleted"


def test_a_program_cannot_forge_a_reference(project: Project) -> None:
    project.write(
        "workflow.yaml",
        """name: w\ntasks: {make: {command: [echo, '{"$ork": {"object": "runs/a/b.0.1.value-0"}}']}}\n""",
    )
    project.run()
    assert project.output("make") is None


RETRIED = """
import os, signal
from pathlib import Path

def make():
    Path("made").open("a").write("x")
    return os.urandom(200_000) if Path("made").stat().st_size > 100 else b"a" * 200_000

def once(make: bytes):
    tries = Path("tries")
    tries.open("a").write("x")
    if tries.stat().st_size == 1:
        from ork.worker.data import encode
        sent = encode.ValueWriter._sent
        def killed(self, name, write):
            sent(self, name, write)
            if name == "1":
                os.kill(os.getpid(), signal.SIGKILL)
            return len(make), "0" * 64
        encode.ValueWriter._sent = killed
    return [make, b"b" * 100_000]

def count(once: list):
    return [len(each) for each in once]
"""


def test_a_killed_attempt_leaves_nothing_to_read_and_equal_data_hits_the_cache(project: Project) -> None:
    """It dies after its values are stored and before its status is. The next run makes the same bytes under other names."""
    project.write("tasks.py", RETRIED)
    project.write(
        "workflow.yaml",
        "name: w\ntasks:\n  make: {file: tasks.py, function: make}\n"
        "  once: {file: tasks.py, function: once, depends_on: [make], retries: 1, cache: 1h}\n"
        "  count: {file: tasks.py, function: count, depends_on: [once]}\n",
    )
    project.run()
    assert project.output("count") == [200_000, 100_000]
    assert {each["$ork"]["object"].rpartition("/")[2] for each in project.output("once")} == {
        "once.0.2.value-0",
        "once.0.2.value-1",
    }, "of the second attempt"
    assert len([*project.folder.rglob("once.0.1.value-[01]")]) == 2, "what the first one left is deleted with the run"
    project.run()
    assert (project.folder / "tries").stat().st_size == 2, (
        "`once` was taken from the cache: the same data, in another run"
    )
    assert project.output("count") == [200_000, 100_000]
    stored = list(project.folder.rglob("make.0.1.value-0"))
    assert len({file.stat().st_ino for file in stored}) == 1 < len(stored), "stored once"
    done = project._ork("prune", "--older-than", "0s", cwd=project.folder)
    assert done.returncode == 0, done.stderr
    assert not [
        file
        for file in (project.folder / ".ork/objects").rglob("*")
        if file.is_file() and file.stat().st_size >= 100_000
    ]


CONTAINERS = """
name: data
tasks:
  make: {file: tasks.py, function: make}
  folder: {file: tasks.py, function: folder}
  count:
    image: busybox
    command: [sh, -c, 'wc -l < "$0" > /out/lines.txt; ls "$1" >> /out/lines.txt; cat "$F" >> /out/lines.txt', {ref: make.text, as: file}, {ref: folder, as: file}]
    env: {F: {ref: make.rows, as: file}}
    output: {from_file: /out/lines.txt}
  copy:
    image: busybox
    command: [sh, -c, 'cp -r "$0" /out/tree.d', {ref: folder, as: file}]
    output: {from_file: /out/tree.d}
  read: {image: python, file: tasks.py, function: read, depends_on: [make, count]}
  each: {file: tasks.py, function: each, foreach: tasks.copy.output}
"""


@pytest.fixture
def engine(project: Project) -> str:
    daemon = daemon_or_skip()
    busybox(daemon)
    return str(daemon.url)


@pytest.mark.slow
def test_containers_get_and_leave_values(project: Project, engine: str) -> None:
    daemon = daemon_or_skip()
    image = python_image(daemon, "python-data", {"/tasks.py": FUNCTIONS.encode()})
    project.write("workers.yaml", f"default: {{where: docker, host: '{engine}', network: none}}\n")
    project.write("tasks.py", FUNCTIONS)
    project.write("workflow.yaml", CONTAINERS.replace("image: python", f"image: {image}"))
    project.run()
    assert project.output("each") == [f"deep/{number}.txt: file {number}" for number in range(3)]
    kind, lines, nested = project.output("read")
    assert (kind, lines.split()) == ("File", ["2", "deep", "1"])
    assert nested["raw"]["$ork"]["size"] == 80_000
    project.shown("read", "--path", "[2].raw", "--to", "raw.bin")
    assert (project.folder / "raw.bin").read_bytes() == b"\x00\xff" * 40_000

"""Workflows in containers, as a person runs them: `ork` itself, a real engine, and what is left when they are over."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import OrkCli
from tests.docker import Daemon, busybox, daemon_or_skip, python_image
from tests.integration.location_images import location_image

pytestmark = pytest.mark.slow

WORKERS = "default: {{where: docker, host: '{url}', network: none}}\n"


class Yard:
    """A project with an engine of its own to run containers on."""

    def __init__(self, folder: Path, daemon: Daemon, ork: OrkCli, environment: dict[str, str]) -> None:
        self.folder = folder
        self.daemon = daemon
        self._ork = ork
        self.environment = dict(environment)
        self.write("workers.yaml", WORKERS.format(url=daemon.url))

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def ork(self, *words: str, code: int = 0) -> str:
        done = self._ork(*words, cwd=self.folder)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def json(self, *words: str, code: int = 0) -> Any:
        done = self._ork(*words, "--json", cwd=self.folder)
        assert done.returncode == code, done.stdout + done.stderr
        return json.loads(done.stdout)

    def begin(self, *words: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "ork", *words], cwd=self.folder, env=self.environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def own_containers(self) -> list[str]:
        """Those of this project's runs, whatever their state."""
        url = f"file:{self.folder}/.ork/objects"
        return self.daemon.containers(f"ork.store={url}")

    def until(self, is_true: Callable[[], object], seconds: float = 60) -> None:
        give_up_at = time.monotonic() + seconds
        while not is_true():
            assert time.monotonic() < give_up_at
            time.sleep(0.05)


@pytest.fixture
def yard(tmp_path: Path, ork_cli: OrkCli, plain_environment: dict[str, str]) -> Iterator[Yard]:
    daemon = daemon_or_skip()
    busybox(daemon)
    yard = Yard(tmp_path, daemon, ork_cli, plain_environment)
    yield yard
    left = yard.own_containers()
    for name in left:
        daemon.docker("rm", "-fv", name)
    assert (left, daemon.volumes()) == ([], [])


def test_the_container_and_the_image_an_attempt_ran_are_shown(yard: Yard) -> None:
    yard.write("workflow.yaml", "name: w\ntasks: {a: {image: busybox, command: [echo, hello]}}\n")
    yard.ork("run")
    (attempt,) = yard.json("show", "@last")["tasks"][0]["attempts"]
    image = yard.daemon.docker("image", "inspect", "busybox", "--format", "{{.Id}}").strip()
    assert attempt["ran_in"]["image"] == image
    assert len(attempt["ran_in"]["container"]) == 64
    shown = yard.ork("show", "@last", "--full")
    assert attempt["external_name"] in shown
    assert f"image {image}" in shown


def test_the_output_of_one_plain_image_is_the_input_of_the_next(yard: Yard) -> None:
    busybox(yard.daemon, "second-box")
    yard.write(
        "workflow.yaml",
        """
name: boxes
params: {day: {type: date, default: 2026-01-02}}
tasks:
  make:
    image: busybox
    command: [sh, -c, 'echo "{\\"day\\": \\"$1\\", \\"who\\": \\"$WHO\\"}" > /output/result.json', make, {ref: params.day}]
    env: {WHO: Ada}
    output: {from_file: /output/result.json}
  use:
    image: second-box
    command: [cp, /input/data.json, /result.json]
    input: {to_file: /input/data.json}
    output: {from_file: /result.json}
    depends_on: [make]
""",
    )
    yard.ork("run")
    assert yard.json("output", "@last", "use") == {"day": "2026-01-02", "who": "Ada"}


def test_the_example_runs_as_it_stands(yard: Yard, tree: Path) -> None:
    for file in (tree / "examples" / "containers").iterdir():
        if file.is_file():
            yard.write(file.name, file.read_text())
    yard.environment["DOCKER_HOST"] = yard.daemon.url
    assert yard.begin("run").wait(60) == 0
    assert yard.json("output", "@last", "pass_on") == {"words": 6}


def test_the_output_of_another_image_is_never_taken_from_the_cache(yard: Yard) -> None:
    busybox(yard.daemon, "second-box")
    script = 'printf %s $(cat /proc/sys/kernel/random/uuid) | sed s/.*/\\"\\&\\"/ > /answer'
    outputs = []
    for image in ("busybox", "busybox", "second-box"):
        yard.write(
            "workflow.yaml",
            f"name: w\ntasks:\n  a:\n    image: {image}\n    command: [sh, -c, '{script}']\n"
            "    output: {from_file: /answer}\n    cache: 1h\n",
        )
        yard.ork("run")
        outputs.append(yard.json("output", "@last", "a"))
    assert outputs[0] == outputs[1] != outputs[2]


def test_a_failure_says_what_a_person_needs(yard: Yard) -> None:
    yard.write(
        "workflow.yaml",
        """
name: fails
tasks:
  silent: {image: busybox, command: ["true"], output: {from_file: /out/result.json}}
  hungry: {image: busybox, command: [sh, -c, "x=aaaaaaaa; while :; do x=$x$x; done"], resources: {memory: 64Mi}}
  wrong: {image: busybox, command: [sh, -c, "echo the reason; exit 4"]}
""",
    )
    said = yard.ork("run", code=1)
    for words in ("there is no file /out/result.json", "out of memory", "137", "exit code 4", "the reason"):
        assert words in said, said


def test_functions_run_in_images_with_all_that_belongs_to_them(yard: Yard) -> None:
    tasks = (
        b"import os, ork\n"
        b"def extract(n: int, ctx: ork.Context) -> list[int]:\n"
        b"    print('as', os.getuid(), 'in', os.getcwd()); ctx.log.info('hello'); return list(range(n))\n"
        b"def total(extract: list[int]) -> int: return sum(extract)\n"
        b"def large(extract): return 'x' * 100_000\n"
        b"def measured(large): return len(large)\n"
        b"def broken(extract): return extract[99]\n"
    )
    python_image(yard.daemon, "functions", {"app/tasks.py": tasks}, "WORKDIR /app", 'ENTRYPOINT ["/not/asked"]')
    yard.write(
        "workers.yaml",
        WORKERS.format(url=yard.daemon.url)
        + f"strict: {{where: docker, host: '{yard.daemon.url}', network: none, user: '4711', read_only: true}}\n",
    )
    yard.write(
        "workflow.yaml",
        """
name: functions
params: {n: {type: int, default: 4}}
tasks:
  extract: {executor: python, image: functions, file: tasks.py, function: extract, worker: strict}
  total: {image: functions, module: tasks, function: total, depends_on: [extract]}
  large: {image: functions, file: tasks.py, function: large, depends_on: [extract]}
  measured: {image: functions, file: tasks.py, function: measured, depends_on: [large]}
  broken: {image: functions, file: tasks.py, function: broken, depends_on: [extract]}
""",
    )
    said = yard.ork("run", code=1)
    assert "IndexError: list index out of range" in said
    assert "tasks.py:7 in broken" in said
    assert (yard.json("output", "@last", "total"), yard.json("output", "@last", "measured")) == (6, 100_000)
    log = yard.ork("logs", "@last", "extract")
    assert "as 4711 in /app" in log
    assert "hello" in log


def test_a_scheduler_that_is_killed_leaves_its_containers_to_the_next(yard: Yard) -> None:
    script = "for i in $(seq 60); do echo line $i; sleep 0.05; done; echo $((6*7)) > /answer"
    yard.write(
        "workflow.yaml",
        f"name: long\ntasks:\n  work: {{image: busybox, command: [sh, -c, '{script}'], output: {{from_file: /answer}}}}\n",
    )
    first = yard.begin("run")
    yard.until(yard.own_containers)
    yard.until(lambda: "line 3" in yard.ork("logs", "@last"))
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    (name,) = yard.own_containers()
    yard.daemon.docker("wait", name)  # it ends while nobody is there
    yard.ork("tick", "--stay")
    run = yard.json("show", "@last")
    assert (run["status"], run["tasks"][0]["attempt"]) == ("success", 1)
    assert yard.json("output", "@last", "work") == 42
    lines = [line.partition("line ")[2] for line in yard.ork("logs", "@last").splitlines() if "line" in line]
    assert lines == [str(number) for number in range(1, 61)]


def test_ticks_that_come_rarely_take_a_container_that_goes_on_for_alive(yard: Yard) -> None:
    script = "until [ -e /go ]; do sleep 0.05; done"
    yard.write("workflow.yaml", f"name: w\ntasks:\n  a: {{image: busybox, command: [sh, -c, '{script}']}}\n")
    yard.environment["ORK_STALE_SECONDS"] = "4"
    yard.ork("deploy", "workflow.yaml")
    yard.ork("trigger", "w")
    assert yard.begin("tick").wait(60) == 0
    yard.until(yard.own_containers)
    yard.until(lambda: "running" in yard.daemon.docker("ps", "--format", "{{.State}}"))
    time.sleep(4.5)  # longer than a worker may be silent: nobody keeps it between two ticks
    assert yard.begin("tick").wait(60) == 0
    assert yard.json("show", "@last")["status"] == "running"
    yard.daemon.docker("exec", yard.own_containers()[0], "touch", "/go")
    assert yard.begin("tick", "--stay").wait(60) == 0
    run = yard.json("show", "@last")
    assert (run["status"], run["tasks"][0]["attempt"]) == ("success", 1)


@pytest.mark.parametrize("how", ["cancel", "timeout"])
def test_what_is_stopped_is_gone_from_the_engine(yard: Yard, how: str) -> None:
    limit = ", timeout: 1s" if how == "timeout" else ""
    yard.write("workflow.yaml", f"name: w\ntasks:\n  a: {{image: busybox, command: [sleep, '600']{limit}}}\n")
    yard.environment["ORK_STOP_GRACE_SECONDS"] = "0.5"
    running = yard.begin("run")
    if how == "cancel":
        yard.until(lambda: "running" in yard.ork("show", "@last") if yard.own_containers() else False)
        yard.ork("cancel", "@last")
    assert running.wait(60) == 1
    assert yard.own_containers() == []
    task = yard.json("show", "@last")["tasks"][0]
    assert task["status"] == ("cancelled" if how == "cancel" else "failed")


def test_without_an_engine_the_reason_is_told(yard: Yard) -> None:
    yard.write("workers.yaml", "default: {where: docker, host: 'unix:///nowhere/docker.sock'}\n")
    yard.write("workflow.yaml", "name: w\ntasks:\n  a: {image: busybox}\n")
    assert "there is no container engine at unix:///nowhere/docker.sock" in yard.ork("run", code=1)


def test_tasks_of_an_image_import_from_the_folders_of_its_project(yard: Yard) -> None:
    code = "from common.util import x\nfrom lib import y\n\n\ndef main() -> int:\n    return x() + y\n"
    files = {
        "ork.yaml": "pythonpath: [src]\n",
        "common/util.py": "def x(): return 40\n",
        "src/lib.py": "y = 2\n",
        "tasks/a.py": code,
        "flows/etl.py": code,
        "flows/etl.yaml": "name: etl\ntasks:\n  near: {file: etl.py}\n  far: {file: /tasks/a.py}\n",
    }
    location_image(yard.daemon, "project-image", files)
    yard.write("locations.yaml", "- {name: here, image: 'project-image', pull: never}\n")
    yard.write("ork.yaml", "pythonpath: [src]\n")
    assert yard.json("locations", "refresh", "here")["locations"][0]["workflows"] == ["etl"]
    yard.ork("run", "etl")
    assert (yard.json("output", "@last", "near"), yard.json("output", "@last", "far")) == (42, 42)
    yard.write("named.yaml", "name: named\ntasks:\n  a: {image: project-image, file: flows/etl.py, executor: python}\n")
    yard.ork("run", "named.yaml")
    assert yard.json("output", "@last", "a") == 42

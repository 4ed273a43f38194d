"""Runs whose tasks are on Cloud Run, as a person starts them: `ork` itself, and a fake Cloud Run with real processes or containers."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("google.cloud.run_v2", reason="the extra `gcp` is not installed")

from tests.cloud.cloud_run import FakeCloudRun
from tests.cloud.runners import DockerRunner, ProcessRunner, Runner
from tests.conftest import OrkCli
from tests.docker import busybox, daemon_or_skip, own_registry
from tests.integration.location_images import location_image

pytestmark = pytest.mark.slow

PROJECT = "default_where: cloudrun\ngcp: {project: acme, region: europe-west1}\n"
COUNTING = """
import os, time
def main(item=None):
    with open(os.environ["STARTS"], "a") as file:
        file.write("x")
    time.sleep(0.2)
    return item
"""


class Yard:
    """A project whose tasks run on a fake Cloud Run."""

    def __init__(self, folder: Path, runner: Runner, ork: OrkCli, environment: dict[str, str]) -> None:
        self.folder = folder
        self.cloud = FakeCloudRun(runner)
        self._ork = ork
        own = {"ORK_CLOUD_RUN_ENDPOINT": self.cloud.url, "ORK_OBJECTS": f"file:{folder}/.ork/documents"}
        self.environment = {**environment, **own}
        self.write("ork.yaml", PROJECT)

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def ork(self, *words: str, code: int | None = 0) -> str:
        done = self._ork(*words, cwd=self.folder, env=self.environment, timeout=240)
        assert code is None or done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def begin(self, *words: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "ork", *words], cwd=self.folder, env=self.environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def show(self) -> Any:
        return json.loads(self.ork("show", "@last", "--json"))

    def until(self, is_true: Callable[[], object], seconds: float = 120) -> None:
        end = time.monotonic() + seconds
        while not is_true():
            assert time.monotonic() < end
            time.sleep(0.1)


@pytest.fixture
def yard(tmp_path: Path, ork_cli: OrkCli, plain_environment: dict[str, str]) -> Iterator[Yard]:
    """Its image is the project's own folder, and its containers are processes of this machine."""
    made = Yard(tmp_path, ProcessRunner({"project:1": tmp_path}), ork_cli, plain_environment)
    made.write("workers.yaml", "default: {image: 'project:1', cpu: 1, memory: 512Mi}\n")
    yield made
    made.cloud.close()


def counting(yard: Yard, tasks: str) -> Path:
    """A workflow of tasks that count how often they are started."""
    starts = yard.folder / "starts"
    yard.write("work.py", COUNTING)
    yard.write("workers.yaml", f"default: {{image: 'project:1', env: {{STARTS: '{starts}'}}}}\n")
    yard.write("flow.yaml", f"name: flow\ntasks:\n{tasks}")
    return starts


CHAIN = "  a: {file: work.py}\n  b: {file: work.py, depends_on: [a]}\n  c: {file: work.py, depends_on: [b]}\n"
FAN_OUT = "  each: {file: work.py, foreach: [1, 2, 3, 4, 5, 6], inputs: {item: {ref: item}}}\n"


@pytest.fixture
def containers(tmp_path: Path, ork_cli: OrkCli, plain_environment: dict[str, str]) -> Iterator[Yard]:
    daemon = daemon_or_skip()
    busybox(daemon)
    documents = tmp_path / ".ork" / "documents"
    environment = {**plain_environment, "DOCKER_HOST": "tcp://127.0.0.1:1"}  # there is no engine beside the scheduler
    made = Yard(tmp_path, DockerRunner(daemon, [documents]), ork_cli, environment)
    yield made
    made.cloud.close()


def test_the_sample_and_its_workers_file_run_in_the_image_of_their_location(containers: Yard, tree: Path) -> None:
    sample = tree / "examples" / "etl"
    files = {
        str(path.relative_to(sample)): path.read_text() for path in sample.rglob("*") if path.suffix in (".py", ".yaml")
    }
    shutil.copy(tree / "tests" / "samples" / "workers.yaml", containers.folder)
    # The image has the whole project: what its own settings say about places means nothing inside it.
    files |= {name: (containers.folder / name).read_text() for name in ("ork.yaml", "workers.yaml")}
    daemon = daemon_or_skip()
    location_image(daemon, "etl-location", files)
    with own_registry() as registry:
        digest = registry.push(daemon, "etl-location", "etl:1")
        containers.write("locations.yaml", f"- {{name: etl, image: '{registry.address}/etl:1'}}\n")
        containers.ork("locations", "refresh", "etl")
        containers.ork("run", "my_etl")
        shown = containers.show()
    assert shown["status"] == "success", shown
    parser, *executions = containers.cloud.executions
    assert "parse" in str(parser.template.containers[0].env)
    (job,) = {execution.job.rpartition("/")[2] for execution in executions}
    (execution, *_) = executions
    container = execution.template.containers[0]
    assert container.image.endswith(f"@{digest}")
    assert list(container.command) == ["ork-worker"]
    assert execution.template.service_account == "ork-extract@project.iam.gserviceaccount.com"
    assert execution.template.vpc_access.connector.endswith("/external")
    assert execution.template.max_retries == 0
    assert execution.template.timeout.total_seconds() > 600
    assert job.startswith("ork-")


def test_a_location_whose_image_has_no_ork_says_what_the_platform_says(containers: Yard) -> None:
    with own_registry() as registry:
        registry.push(daemon_or_skip(), "busybox", "plain:1")
        containers.write("locations.yaml", f"- {{name: plain, image: '{registry.address}/plain:1'}}\n")
        said = containers.ork("locations", "refresh", "plain", code=None)
    assert "Cloud Run" in said
    assert "did not start" in said
    documents = containers.folder / ".ork" / "documents" / "runs"
    assert not documents.exists() or not any(documents.iterdir())  # nothing of the parser is left


def test_every_task_runs_once_though_answers_are_lost_and_the_platform_starts_twice(yard: Yard) -> None:
    starts = counting(yard, CHAIN + FAN_OUT)
    yard.cloud.faults.lost_answers = 0.3
    yard.cloud.faults.starts_twice = True
    yard.cloud.faults.late_listings = 3.0
    yard.ork("run", "flow.yaml")
    assert starts.read_text() == "x" * 9
    yard.until(lambda: yard.cloud.running() == 0)


def test_the_next_scheduler_takes_over_what_a_killed_one_started(yard: Yard) -> None:
    starts = counting(yard, CHAIN + FAN_OUT)
    yard.cloud.faults.cold_start = 1.0
    yard.ork("deploy", "flow.yaml")
    yard.ork("run", "flow", "--detach")
    for _ in range(3):
        scheduler = yard.begin("scheduler")
        time.sleep(3)
        scheduler.send_signal(signal.SIGKILL)
        scheduler.wait()
    last = yard.begin("scheduler")
    try:
        yard.until(lambda: yard.show()["status"] in ("success", "failed"), 180)
    finally:
        last.send_signal(signal.SIGTERM)
        last.wait(60)
    assert yard.show()["status"] == "success"
    assert starts.read_text() == "x" * 9


def test_ticks_alone_drive_a_run(yard: Yard) -> None:
    starts = counting(yard, CHAIN + FAN_OUT)
    yard.ork("deploy", "flow.yaml")
    yard.ork("run", "flow", "--detach")
    yard.until(lambda: yard.ork("tick") is not None and yard.show()["status"] not in ("pending", "running"))
    assert yard.show()["status"] == "success"
    assert starts.read_text() == "x" * 9


def test_a_tick_reports_what_the_platform_refuses(yard: Yard) -> None:
    counting(yard, "  a: {file: work.py}\n")
    yard.write("workers.yaml", "default: {image: 'nowhere:1'}\n")
    yard.ork("deploy", "flow.yaml")
    yard.ork("run", "flow", "--detach")
    yard.until(lambda: yard.ork("tick") is not None and yard.show()["status"] not in ("pending", "running"), 60)
    assert "not found" in json.dumps(yard.show())


def test_a_run_of_three_tasks_costs_few_calls(yard: Yard) -> None:
    counting(yard, CHAIN)
    yard.ork("run", "flow.yaml")
    calls = yard.cloud.calls
    assert calls["jobs.run"] == 3
    assert (calls["jobs.create"], calls["jobs.list"]) == (1, 1)
    assert calls["jobs.get"] <= 3
    assert calls["executions.list"] <= 9
    assert calls.total() <= 18


def test_quotas_and_passing_errors_delay_a_run_and_do_not_end_it(yard: Yard) -> None:
    starts = counting(yard, CHAIN)
    yard.cloud.faults.errors += [
        ("jobs.create", 503, "The service is currently unavailable."),
        ("jobs.run", 429, "Quota exceeded for quota metric 'Job run requests'."),
        ("jobs.run", 409, "The operation was aborted."),
        ("executions.list", 503, "The service is currently unavailable."),
    ]
    yard.ork("run", "flow.yaml")
    assert starts.read_text() == "xxx"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"ork.yaml": "default_where: cloudrun\ngcp: {project: nobody, region: europe-west1}\n"},
            "Permission 'run.jobs",
        ),
        ({"ork.yaml": "default_where: cloudrun\ngcp: {project: acme, region: mars-north1}\n"}, "mars-north1"),
        ({"workers.yaml": "default: {image: 'nowhere:1'}\n"}, "Image 'nowhere:1' not found"),
        ({"workers.yaml": "default: {image: 'project:1', service_account: nobody}\n"}, "service_account"),
    ],
)
def test_what_the_platform_refuses_fails_the_task_in_its_words(yard: Yard, change: dict[str, str], words: str) -> None:
    counting(yard, "  a: {file: work.py}\n")
    for name, text in change.items():
        yard.write(name, text)
    assert words in yard.ork("run", "flow.yaml", code=1)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"workers.yaml": "default: {memory: 2Gi}\n"}, "`image` in the worker config"),
        ({"workers.yaml": "default: {memory: 2Gi}\n"}, "image of a code location"),
        ({"workers.yaml": "default: {image: 'project:1', cpu: 1, memory: 64Gi}\n"}, "at most 32Gi"),
        ({"workers.yaml": "default: {where: cloudrun, image: 'project:1', memory: 64Mi}\n"}, "at least 512Mi"),
        ({"workers.yaml": "default: {where: cloudrun, image: 'project:1', memory: lots}\n"}, "lots"),
        ({"ork.yaml": "default_where: cloudrun\n"}, "a project and a region"),
        ({"ork.yaml": "gcp: {project: acme}\n"}, "needs `region`"),
        (
            {"flow.yaml": "name: flow\ntasks:\n  a: {file: work.py, env: {KEY: {secret: KEY}}}\n", ".env": "KEY=1\n"},
            "from: gcp",
        ),
        ({"flow.yaml": "name: flow\ntasks:\n  a: {executor: cloudrun, command: x}\n"}, "`job`"),
        (  # documents of this yard are files, as its environment says
            {"flow.yaml": "name: flow\ntasks:\n  a: {image: x, output: {from_file: /out/n.json}}\n"},
            "set ORK_OBJECTS to gs://",
        ),
    ],
)
def test_what_cannot_run_there_is_refused_before_it_is_run(yard: Yard, change: dict[str, str], words: str) -> None:
    counting(yard, "  a: {file: work.py}\n")
    for name, text in change.items():
        yard.write(name, text)
    said = yard.ork("validate", "flow.yaml", code=None) + yard.ork("validate", "workers.yaml", code=None)
    assert words in said
    assert yard.cloud.calls.total() == 0


def test_why_tells_what_the_platform_says_of_a_task_that_has_not_begun(yard: Yard) -> None:
    counting(yard, "  a: {file: work.py}\n")
    yard.cloud.faults.cold_start = 600.0
    running = yard.begin("run", "flow.yaml")
    try:
        yard.until(lambda: "Provisioning resources" in yard.ork("why", "@last", code=None))
    finally:
        running.send_signal(signal.SIGKILL)
        running.wait()


def test_workers_shows_missing_permissions_and_starts_nothing(yard: Yard) -> None:
    assert "permissions complete" in yard.ork("workers")
    yard.cloud.denied = {"run.jobs.runWithOverrides"}
    assert "missing permissions: run.jobs.runWithOverrides" in yard.ork("workers")
    assert not yard.cloud.jobs
    assert set(yard.cloud.calls) <= {"jobs.testIamPermissions", "jobs.get"}


def test_a_cancelled_run_leaves_nothing_running_on_the_platform(yard: Yard) -> None:
    counting(yard, "  a: {command: [sleep, '600']}\n")
    running = yard.begin("run", "flow.yaml")
    yard.until(lambda: yard.cloud.executions and yard.cloud.executions[0].running_count == 1)
    running.send_signal(signal.SIGINT)
    running.wait(120)
    assert yard.show()["status"] == "cancelled"
    yard.until(lambda: yard.cloud.running() == 0)


def test_a_task_without_retries_is_lost_when_its_machine_is(yard: Yard) -> None:
    counting(yard, "  a: {command: [sleep, '600']}\n")
    running = yard.begin("run", "flow.yaml")
    yard.until(lambda: yard.cloud.executions and yard.cloud.executions[0].running_count == 1)
    yard.until(
        lambda: os.path.exists(yard.folder / ".ork" / "documents" / "runs") and "running" in yard.ork("show", "@last")
    )
    yard.cloud.kill_tasks()
    running.wait(120)
    (task,) = yard.show()["tasks"]
    assert task["status"] == "failed"
    assert "Cloud Run" in json.dumps(task)


def test_a_secret_reaches_its_task_by_reference_and_is_nowhere_in_clear(yard: Yard) -> None:
    yard.cloud.secrets["projects/acme/secrets/key"] = "open sesame"
    yard.write("ork.yaml", PROJECT + "secrets: {KEY: {from: gcp, secret: key}}\n")
    yard.write("work.py", "import os\ndef main():\n    return len(os.environ['KEY'])\n")
    yard.write("flow.yaml", "name: flow\ntasks:\n  a: {file: work.py, env: {KEY: {secret: KEY}}}\n")
    yard.ork("run", "flow.yaml")
    (task,) = yard.show()["tasks"]
    assert "11" in json.dumps(task)
    assert "open sesame" not in str(yard.cloud.executions) + str(yard.cloud._jobs)
    documents = [path.read_bytes() for path in (yard.folder / ".ork").rglob("*") if path.is_file()]
    assert not any(b"open sesame" in document for document in documents)


def test_a_secret_whose_declaration_changed_is_refused_at_the_start(yard: Yard) -> None:
    yard.write("ork.yaml", PROJECT + "secrets: {KEY: {from: gcp}}\n")
    yard.write("work.py", "def main(): ...\n")
    yard.write("flow.yaml", "name: flow\ntasks:\n  a: {file: work.py, env: {KEY: {secret: KEY}}}\n")
    yard.ork("deploy", "flow.yaml")
    yard.write("ork.yaml", PROJECT + "secrets: {KEY: {from: env}}\n")
    yard.environment["KEY"] = "open sesame"
    said = yard.ork("run", "flow", code=1)
    assert "would be visible there" in said
    assert "{from: gcp}" in said
    assert not yard.cloud.executions


SHARDS = """
import os, time
def main(item):
    with open(os.environ["STARTS"], "a") as file:
        file.write(f"{item} ")
    print("shard", item)
    if item % 5 == 0 and os.environ["ORK_ATTEMPT"] == "1":
        raise ValueError(f"shard {item} is broken")
    return item
"""

# So that they fail together on a slow machine, too.
BOTH_BEGAN = "while not {'5', '10'} <= set(open(os.environ['STARTS']).read().split()): time.sleep(0.1)"


def test_failed_instances_of_a_fan_out_come_back_as_one_smaller_execution(yard: Yard) -> None:
    starts = counting(
        yard,
        "  each: {file: shards.py, foreach: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12], retries: 1, inputs: {item: {ref: item}}}\n",
    )
    yard.write("shards.py", SHARDS.replace("        raise", f"        {BOTH_BEGAN}\n        raise"))
    yard.ork("run", "flow.yaml")
    assert yard.show()["status"] == "success"
    assert sorted(map(int, starts.read_text().split())) == sorted([*range(1, 13), 5, 10])
    assert [execution.task_count for execution in yard.cloud.executions] == [12, 2]
    assert "shard 7" in yard.ork("logs", "@last", "each[6]", code=None) + yard.ork("logs", "@last", code=None)


def test_a_cancelled_fan_out_ends_its_execution(yard: Yard) -> None:
    counting(yard, "  each: {command: [sleep, '600'], parallel: 6, concurrency: 2}\n")
    running = yard.begin("run", "flow.yaml")
    yard.until(lambda: yard.cloud.executions and yard.cloud.executions[0].running_count == 2)
    yard.until(lambda: "running" in yard.ork("show", "@last"))
    running.send_signal(signal.SIGINT)
    running.wait(120)
    assert yard.show()["status"] == "cancelled"
    yard.until(lambda: yard.cloud.running() == 0)
    assert len(yard.cloud.executions) == 1

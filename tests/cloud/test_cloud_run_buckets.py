"""Runs on Cloud Run whose documents are in a bucket: no folder is shared with the containers."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("google.cloud.run_v2", reason="the extra `gcp` is not installed")
pytest.importorskip("tests.cloud.fake_gcs", reason="this tree has no object stores in buckets")

from tests.cloud.bucket_volumes import GcsBucket
from tests.cloud.fake_gcs import BUCKET, FakeGcs
from tests.cloud.runners import DockerRunner
from tests.cloud.test_cloud_run_runs import Yard
from tests.conftest import OrkCli
from tests.docker import busybox, daemon_or_skip, python_image

pytestmark = pytest.mark.slow

FLOW = """
name: flow
tasks:
  numbers: {file: work.py, function: numbers}
  double: {image: busybox, command: [sh, -c, "sed s/3/6/ /in/numbers.json > /out/doubled.json"], depends_on: [numbers],
           inputs: {n: {ref: tasks.numbers.output}}, input: {to_file: /in/numbers.json}, output: {from_file: /out/doubled.json}}
  again: {image: busybox, command: [sh, -c, "cp /data/in.json /data/out.json"], depends_on: [double],
          inputs: {n: {ref: tasks.double.output}}, input: {to_file: /data/in.json}, output: {from_file: /data/out.json}}
  each: {file: work.py, function: one, foreach: [1, 2, 3], depends_on: [again], inputs: {item: {ref: item}}}
"""
WORK = b"""
def numbers():
    print("counting")
    return [1, 2, 3]
def one(item):
    return item
"""


@pytest.fixture
def gcs() -> Iterator[Any]:
    made = FakeGcs()
    yield made
    made.close()


@pytest.fixture
def yard(tmp_path: Path, gcs: Any, ork_cli: OrkCli, plain_environment: dict[str, str]) -> Iterator[Yard]:
    """Its image has python3 and the project's files, and nothing of Ork."""
    daemon = daemon_or_skip()
    busybox(daemon)
    image = python_image(daemon, "py-project", {"/app/work.py": WORK}, "WORKDIR /app")
    made = Yard(tmp_path, DockerRunner(daemon), ork_cli, plain_environment)
    made.environment["ORK_OBJECTS"] = gcs.url()
    made.cloud.buckets[BUCKET] = GcsBucket(gcs.endpoint, BUCKET, gcs.keys)
    made.write("workers.yaml", f"default: {{image: {image}, memory: 512Mi}}\n")
    made.write("work.py", WORK.decode())
    made.write("flow.yaml", FLOW)
    yield made
    made.cloud.close()


def outputs(yard: Yard) -> dict[str, Any]:
    return {task["name"]: task.get("output") for task in yard.show()["tasks"]}


def test_functions_and_plain_images_run_with_nothing_but_a_bucket_between_them(yard: Yard) -> None:
    yard.cloud.faults.cold_start = 3.0
    yard.ork("run", "flow.yaml")
    shown = json.dumps(yard.show())
    assert '"failed"' not in shown
    log = yard.ork("logs", "@last", "numbers")
    assert "Cloud Run: Provisioning resources." in log
    assert "counting" in log
    assert all(not job.startswith("ork-a-") for job in yard.cloud.jobs)  # plain images leave no Job
    assert len(yard.cloud.jobs) == 2  # one for single functions, one for the fan-out with its parallelism


def test_answers_of_the_platform_are_lost_while_listings_of_the_bucket_are_late(yard: Yard, gcs: Any) -> None:
    yard.cloud.faults.lost_answers = 0.3
    yard.cloud.faults.late_listings = 2.0
    gcs.listing_delay = 5.0
    yard.write(
        "flow.yaml",
        FLOW.replace("depends_on: [numbers],", "depends_on: [numbers], retries: 5,").replace(
            "depends_on: [double],", "depends_on: [double], retries: 5,"
        ),
    )
    yard.ork("run", "flow.yaml")
    assert yard.show()["status"] == "success"
    yard.until(lambda: yard.cloud.running() == 0)


@pytest.mark.soak
def test_user_code_starts_once_and_the_run_ends_though_everything_fails(yard: Yard, gcs: Any, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    yard.cloud._runner._shared = [shared]  # type: ignore[attr-defined]
    tasks = "".join(
        f"  t{n}: {{command: [sh, -c, 'echo {n} >> {shared}/starts; sleep 2'], retries: 0}}\n" for n in range(6)
    )
    after = f"  last: {{command: [sh, -c, 'echo last >> {shared}/starts'], depends_on: [t0, t1, t2, t3, t4, t5]}}\n"
    yard.write("flow.yaml", f"name: flow\ntasks:\n{tasks}{after}")
    faults = yard.cloud.faults
    faults.lost_answers, faults.starts_twice, faults.late_listings = 0.3, True, 10.0
    gcs.listing_delay = 10.0
    yard.ork("deploy", "flow.yaml")
    yard.ork("run", "flow", "--detach")
    for _ in range(4):
        scheduler = yard.begin("scheduler")
        time.sleep(5)
        scheduler.kill()
        scheduler.wait()
    last = yard.begin("scheduler")
    try:
        yard.until(lambda: yard.show()["status"] not in ("pending", "running"), 240)
    finally:
        last.terminate()
        last.wait(60)
    assert yard.show()["status"] == "success"
    starts = (shared / "starts").read_text().split()
    assert sorted(starts) == ["0", "1", "2", "3", "4", "5", "last"]
    yard.until(lambda: yard.cloud.running() == 0)


@pytest.mark.soak
def test_a_task_without_retries_survives_a_minute_without_the_bucket(yard: Yard, gcs: Any) -> None:
    yard.write("flow.yaml", "name: flow\ntasks:\n  long: {command: [sh, -c, 'sleep 75; echo 7']}\n")
    running = yard.begin("run", "flow.yaml")
    yard.until(lambda: "status.json" in str(gcs.keys()))
    gcs.is_down = True
    time.sleep(60)
    gcs.is_down = False
    assert running.wait(120) == 0
    assert yard.show()["status"] == "success"
    assert len(yard.cloud.executions) == 1
